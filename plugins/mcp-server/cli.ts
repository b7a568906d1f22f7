import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'mcp-server',
  commands: {
    mcp: {
      summary: 'Servers and clients of MCP',
      commands: {
        serve: {
          summary: 'Serve a desktop client over standard input and output',
          load: () => import('./cli/serve.ts'),
        },
      },
    },
  },
})
