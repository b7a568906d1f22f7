import { createInterface } from 'node:readline/promises'
import * as v from 'valibot'
import {
  callDaemon,
  commandName,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  isObject,
  omitUndefined,
  print,
  printJson,
  readJson,
  readSecret,
  terminalMode,
} from 'svc/cli'
import { channelArgs, channelPath, readChannel, testChannel } from './client.ts'
import type { Field, View } from './client.ts'

const Configured = v.looseObject({ channel: v.string(), account_id: v.string(), note: v.string() })

export default defineCommand({
  description:
    'Configure an account of a channel, or change one: says what to do at the platform, asks for the fields it needs ' +
    '(secrets are not shown), connects it, and checks the credentials. Without a terminal the required secrets are read ' +
    'from standard input, one line each.',
  args: {
    ...channelArgs,
    agent: { type: 'string', description: 'Agent that answers', valueHint: 'name' },
    fields: { type: 'string', description: 'Further fields as a JSON object, no secrets', valueHint: 'json' },
  },
  examples: [
    ['svc channels add telegram', 'asks for the token'],
    ['pass show telegram | svc channels add telegram --agent assistant', 'from a password manager'],
    [`svc channels add irc --fields '{"base_url": "ircs://irc.example.org", "nick": "svc"}'`, 'further fields'],
  ],
  async run(args) {
    const connection = await connect(args)
    const view = await callDaemon(connection, (client) => readChannel(client, args.channel))
    if (!view.available)
      throw new Failure(exits.failed, `there is no adapter for ${view.name}`, 'install a plugin that brings one')
    const given = readFields(args.fields)
    const fields: Record<string, unknown> = { ...given, ...(args.agent !== undefined && { agent_name: args.agent }) }
    const isInFile = view.account_list.some(
      ({ account_id: id, source }) => id === (args.account ?? 'default') && source === 'file',
    )
    if (terminalMode().canType && !args.json && view.account_list.length === 0) print(introduction(view))
    for (const field of view.fields)
      if (!(field.key in fields) && (field.type === 'secret' || (field.required && !isInFile))) {
        const value = await ask(field)
        if (value !== '') fields[field.key] = value
        else if (field.required)
          throw new Failure(exits.usage, `${field.key} is required`, missingAdvice(field, view.name))
      }
    // A channel may need no field at all.
    if (view.account_list.length === 0 && !view.fields.some(({ required }) => required)) fields['allowed_users'] ??= []
    if (Object.keys(fields).length === 0)
      throw new Failure(
        exits.usage,
        `nothing was given for ${view.name}`,
        `type the values on a terminal, or name them with --fields '{"…": …}'; ` +
          `${commandLine(`channels test ${view.name}`)} checks what is configured`,
      )
    const answer = await callDaemon(connection, (client) =>
      client.call('POST', channelPath(view.name, 'configure'), Configured, {
        body: { fields, ...(args.account !== undefined && { account_id: args.account }) },
      }),
    )
    if (args.json) {
      printJson(answer)
      return exits.ok
    }
    print(`${view.display_name} is configured. ${answer.note}`)
    // What was given decides, too.
    const { account_list: accounts } = await callDaemon(connection, (client) => readChannel(client, view.name))
    if (accounts.some(({ account_id: id, sign_in: signsIn }) => id === answer.account_id && signsIn)) {
      print(`${commandLine(`channels login ${view.name}`)} links a phone with a QR code.`)
      return exits.ok
    }
    const tested = await callDaemon(connection, (client) =>
      testChannel(client, view.name, omitUndefined({ account: args.account })),
    )
    print(escapeControls(tested.message))
    if (tested.status !== 'ok') {
      print(`Run ${commandLine(`channels add ${view.name}`)} again to change a value; what is configured stays.`)
      return exits.failed
    }
    print(
      `${commandLine(`channels pair ${view.name} --operator`)} makes a code with which you may talk to it and approve ` +
        `what agents do; without --operator, somebody who may only talk.`,
    )
    return exits.ok
  },
})

/** What to do before the values are asked for. */
function introduction({ display_name: title, setup_steps: steps, setup_time: time }: View): string {
  // The last step is this command.
  const lines = steps.slice(0, -1).map((step, at) => `  ${at + 1}. ${step}`)
  return [`${title}, ${time}:`, ...lines, ''].join('\n')
}

function readFields(text: string | undefined): Readonly<Record<string, unknown>> {
  if (text === undefined) return {}
  try {
    const value: unknown = readJson(text)
    if (isObject(value)) return value
  } catch {
    // Reported below.
  }
  throw new Failure(exits.usage, '--fields is no JSON object', `such as '{"base_url": "https://chat.example.org"}'`)
}

/** Secrets are no arguments: those are in the history of the shell and in the list of processes. */
function missingAdvice({ key, type }: Field, channel: string): string {
  if (type !== 'secret') return 'nothing was changed'
  const command = `printf %s "$${key.toUpperCase()}" | ${commandName()} channels add ${channel} …`
  return `type it on a terminal, or send it: \`${command}\``
}

/** Optional secrets are asked for on a terminal only: elsewhere a line may not be there. */
async function ask({ key, type, description, required, options }: Field): Promise<string> {
  const { canType } = terminalMode()
  if (!canType && !required) return ''
  const what = [description.replace(/\.$/, ''), options.join('|'), required ? '' : 'Enter leaves it out']
  const prompt = `${key} (${what.filter((part) => part !== '').join('; ')}): `
  if (type === 'secret') return await readSecret(prompt.replace(/: $/, ', not shown: '))
  if (!canType) throw new Failure(exits.usage, `${key} is required`, `give it with --fields '{"${key}": …}'`)
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await lines.question(prompt)).trim()
  } finally {
    lines.close()
  }
}
