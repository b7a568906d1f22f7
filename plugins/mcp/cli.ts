import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'mcp',
  commands: {
    mcp: {
      summary: 'Servers and clients of MCP',
      commands: {
        list: { summary: 'List the MCP servers that agents use', load: () => import('./cli/list.ts') },
        show: { summary: 'Show an MCP server with its tools', load: () => import('./cli/show.ts') },
        add: { summary: 'Add an MCP server', load: () => import('./cli/add.ts') },
        test: { summary: 'Try an MCP server without adding it', load: () => import('./cli/test.ts') },
        remove: { summary: 'Remove an MCP server that was added', load: () => import('./cli/remove.ts') },
        restart: { summary: 'Start an MCP server anew', load: () => import('./cli/restart.ts') },
        logs: { summary: 'Print the log of an MCP server', load: () => import('./cli/logs.ts') },
        login: { summary: 'Log in at an MCP server', load: () => import('./cli/login.ts') },
        logout: { summary: 'Forget the login at an MCP server', load: () => import('./cli/logout.ts') },
      },
    },
  },
  checks: { mcp: { load: () => import('./cli/check.ts') } },
})
