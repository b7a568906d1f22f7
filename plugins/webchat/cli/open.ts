import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, note, openBrowser, print, printJson } from 'svc/cli'

export default defineCommand({
  description:
    'Open the page of the running daemon in a browser. Without a browser, as on a server, its address is printed.',
  args: clientArgs,
  examples: [
    ['svc open', 'the daemon of the home'],
    ['svc open --url http://127.0.0.1:4600', 'another one'],
  ],
  async run(args) {
    const connection = await connect(args)
    // A page of a daemon that is gone would only show that nothing answers.
    await callDaemon(connection, (client) => client.call('GET', '/api/health', v.unknown(), { timeoutMs: 5000 }))
    const url = `${connection.client.url}/`
    const isOpen = await openBrowser(url)
    if (args.json) printJson({ url, opened: isOpen })
    else print(isOpen ? `opened ${url}` : url)
    if (!isOpen && !args.json) note('No browser was found here: open the address where there is one.')
    return exits.ok
  },
})
