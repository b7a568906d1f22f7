import { setTimeout as delay } from 'node:timers/promises'
import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, Failure, print, printJson } from 'svc/cli'
import { channelArgs, channelPath } from './client.ts'

const Step = v.looseObject({
  session_id: v.nullable(v.string()),
  status: v.nullable(v.picklist(['pending', 'scanned', 'authenticated'])),
  qr_payload: v.nullable(v.string()),
  connected: v.boolean(),
  expired: v.boolean(),
  message: v.string(),
  help: v.optional(v.string()),
})
type Step = v.InferOutput<typeof Step>
const POLL_INTERVAL_MS = 1000

export default defineCommand({
  description: 'Sign in to a channel by scanning a QR code with the phone.',
  args: channelArgs,
  examples: [['svc channels login whatsapp', 'shows the code in the terminal and waits']],
  async run(args) {
    const { now: step, isShown } = await callDaemon(await connect(args), async (client) => {
      const path = channelPath(args.channel, 'qr/start', args.account)
      let now = await client.call('POST', path, Step, { timeoutMs: 60_000 })
      if (now.session_id === null) throw new Failure(exits.failed, now.message, now.help)
      let shown = ''
      while (!now.connected && !now.expired) {
        if (now.qr_payload !== null && now.qr_payload !== shown) {
          shown = now.qr_payload
          await show(now, args.json === true)
        }
        await delay(POLL_INTERVAL_MS)
        const query = new URLSearchParams({ session_id: now.session_id ?? '' })
        now = await client.call('GET', `${channelPath(args.channel, 'qr/status')}?${query}`, Step)
      }
      return { now, isShown: shown !== '' }
    })
    if (step.expired)
      throw new Failure(
        exits.failed,
        step.message,
        isShown ? 'run this again, and scan the code while it is shown' : undefined,
      )
    if (args.json) printJson(step)
    else print('Signed in.')
    return exits.ok
  },
})

async function show({ qr_payload: payload, message }: Step, isJson: boolean): Promise<void> {
  if (payload === null || isJson) return
  const { renderUnicodeCompact } = await import('uqr')
  print(`${renderUnicodeCompact(payload)}\n${message}`)
}
