//! The wire format between a program under holdup and its clients.
