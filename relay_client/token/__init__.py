"""Token: an OIDC identity for the relay. The one place that asks for one."""
