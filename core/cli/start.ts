import { defineCommand, homeArgs } from './command.ts'
import { hardenProcess } from './process-hardening.ts'
import { locateHome } from './home-location.ts'

export const startArgs = {
  ...homeArgs,
  host: { type: 'string', valueHint: 'host', description: 'Address to listen on (default: 127.0.0.1)' },
  port: { type: 'string', valueHint: 'port', description: 'Port to listen on; 0 takes a free one (default: 4545)' },
  open: { type: 'boolean', description: 'Open its page in a browser' },
  public: { type: 'boolean', description: 'Listen on all network interfaces; needs a key' },
  tls: {
    type: 'boolean',
    description: 'Serve HTTPS; http.tls_cert and http.tls_key name a certificate, else one is made',
  },
  'log-level': {
    type: 'string',
    valueHint: 'level',
    description: 'silent, error, warn, info, debug or trace (default: info)',
  },
  'log-format': {
    type: 'string',
    valueHint: 'text|json',
    description: 'Log lines for people or one JSON object a line (default: text)',
  },
} as const

interface StartArgs {
  readonly host?: string | undefined
  readonly port?: string | undefined
  readonly open?: boolean | undefined
  readonly public?: boolean | undefined
  readonly tls?: boolean | undefined
  readonly 'log-level'?: string | undefined
  readonly 'log-format'?: string | undefined
}
/** Flags as keys of the configuration. */
export function toFlags(args: StartArgs): Readonly<Record<string, unknown>> {
  return {
    host: args.host,
    port: args.port,
    'http.open': args.open,
    'http.public': args.public,
    'http.tls': args.tls,
    log_level: args['log-level'],
    log_format: args['log-format'],
  }
}

export default defineCommand({
  description:
    'Start the daemon and serve until it is stopped. Log lines go to standard error. ' +
    'SIGHUP restarts it and reads the configuration again.',
  args: {
    ...startArgs,
    detach: { type: 'boolean', description: 'Go on in the background; returns when the daemon listens' },
  },
  examples: [
    ['svc start', 'serve on http://127.0.0.1:4545'],
    ['svc start --port 0 --home ./try', 'a second daemon beside the first one'],
    ['svc start --detach', 'in the background; `svc stop` ends it'],
    ['SVC_API_KEY=… svc start --host 0.0.0.0', 'serve other machines, with a key'],
    ['svc start --log-format json', 'log lines for a collector'],
  ],
  async run(args, words) {
    if (args.detach) {
      const { startInBackground } = await import('./detach.ts')
      return await startInBackground(locateHome(args), words, args.json === true)
    }
    hardenProcess(process.execArgv, process.env['NODE_OPTIONS'])
    const { serve } = await import('./serve.ts')
    return await serve({ location: locateHome(args), flags: toFlags(args), json: args.json === true })
  },
})
