import { clientArgs, connect, defineCommand, exits, omitUndefined } from 'svc/cli'

export default defineCommand({
  description:
    'Serve a client of MCP over standard input and output, such as a desktop program: everything goes to the daemon ' +
    'that runs. It starts none.',
  args: {
    ...clientArgs,
    agent: { type: 'string', valueHint: 'agent', description: 'Agent whose tools the client sees, by name or id' },
    server: { type: 'string', valueHint: 'name', description: 'Serve this MCP server of the daemon instead' },
  },
  examples: [
    ['svc mcp serve', 'as the command of an MCP server in the configuration of the client'],
    ['svc mcp serve --agent assistant', 'with the tools of one agent'],
  ],
  async run(args) {
    const connection = await connect(args)
    const { Bridge } = await import('./bridge.ts')
    const path = args.server === undefined ? '/mcp' : `/mcp/${encodeURIComponent(args.server)}`
    const bridge = new Bridge({
      client: connection.client,
      path,
      headers: omitUndefined({ 'x-svc-agent-id': args.agent }),
      write: (message) => process.stdout.write(`${JSON.stringify(message)}\n`),
    })
    await bridge.serve(process.stdin)
    return exits.ok
  },
})
