/** Where browsers come back to after a login. */
export const CALLBACK_PATH = '/api/mcp/oauth/callback'
/** What authorization servers may know of this client. */
export const METADATA_PATH = '/api/mcp/oauth/client-metadata.json'
