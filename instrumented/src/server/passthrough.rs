//! There is nothing to serve.

use super::{InitError, Service};

pub(super) fn start() -> Result<Service, InitError> {
    Ok(Service { address: None })
}
