//! Tells who holds which permit of a tokio semaphore, who waits, and why it hangs.
