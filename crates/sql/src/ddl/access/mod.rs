//! Roles, owners and privileges: kept, and shown by the catalogs. Nothing is enforced.
//!
//! - [`roles`]: CREATE, ALTER and DROP ROLE, members, OWNER TO, REASSIGN and DROP OWNED.
//! - [`grant`]: GRANT, REVOKE, ALTER DEFAULT PRIVILEGES.

pub(super) mod grant;
pub(crate) mod roles;
