/**
 * The version of what plugins import (`svc/sdk`, `svc/providers`, `svc/channels`, `svc/testing`). The first number rises when a plugin has to
 * be changed, the second when something is added.
 */
export const API_VERSION = '1.0.0'
