import { defineError } from 'svc/sdk'

export const serverFailed = defineError('mcp_server_failed', {
  status: 502,
  format: 'coded',
  meaning: 'the MCP server could not be started, reached or understood',
})
