import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  findNearest,
  note,
  omitUndefined,
  print,
  printJson,
  readSecret,
  suggest,
  terminalMode,
} from 'svc/cli'
import type { Connection, DaemonClient } from 'svc/cli'
import { listTemplates } from './client.ts'
import { ask } from './question.ts'

/** Longer than the daemon waits for a provider. */
const TEST_MS = 60_000
const FIRST = 'assistant'

const Provider = v.looseObject({
  name: v.string(),
  auth_status: v.string(),
  env_var: v.optional(v.string()),
  error: v.optional(v.string()),
})
type Provider = v.InferOutput<typeof Provider>
const Providers = v.looseObject({ providers: v.array(Provider) })
const Default = v.looseObject({ provider: v.string(), model: v.string() })
const Tested = v.looseObject({ status: v.string(), latency_ms: v.optional(v.number()), error: v.optional(v.string()) })
const Agent = v.looseObject({ agent_id: v.string(), name: v.string(), warnings: v.optional(v.array(v.string()), []) })
const AgentNames = v.array(v.looseObject({ id: v.string(), name: v.string() }))

interface Answers {
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly template?: string | undefined
  readonly name?: string | undefined
  readonly isInteractive: boolean
  readonly hasKeyOnStdin: boolean
}

export default defineCommand({
  description:
    'Choose the provider and model of agents, test them with one call, and make the first agent. Asks what no flag ' +
    'says; without a terminal, or with --yes, what no flag says stays as it is. A key is never an argument.',
  args: {
    provider: { type: 'string', valueHint: 'name', description: 'Model provider, such as openai or ollama' },
    model: { type: 'string', valueHint: 'id', description: 'Model (default: the one the provider suggests)' },
    'key-stdin': { type: 'boolean', description: 'Read the key of the provider from standard input' },
    template: { type: 'string', valueHint: 'name', description: `Template of the first agent (default: ${FIRST})` },
    name: { type: 'string', valueHint: 'name', description: 'Name of the agent (default: that of the template)' },
    yes: { type: 'boolean', description: 'Ask nothing' },
    ...clientArgs,
  },
  examples: [
    ['svc init', 'asks for everything'],
    ['pass show openai | svc init --provider openai --key-stdin --template researcher', 'in a script'],
    ['svc init --provider builtin --yes', 'the offline model, to look around'],
  ],
  async run({ provider, model, template, name, ...args }) {
    const connection = await connect(args)
    const hasKeyOnStdin = args['key-stdin'] === true
    const isInteractive = terminalMode().canType && args.yes !== true && args.json !== true && !hasKeyOnStdin
    const answers: Answers = { provider, model, template, name, isInteractive, hasKeyOnStdin }
    const chosen = await chooseModel(connection, answers)
    const agent = await makeAgent(connection, answers)
    const word = /^[\w.@:+-]+$/.test(agent.name) ? agent.name : agent.id
    const chat = commandLine(`chat ${word}`)
    if (args.json) printJson({ ...chosen, agent_id: agent.id, agent_name: agent.name, agent_made: agent.isMade })
    else print(`Agents use ${chosen.provider} / ${chosen.model}. Talk to "${escapeControls(agent.name)}" with: ${chat}`)
    return exits.ok
  },
})

/** The provider works when this returns, and is the default. Throws a `Failure` with nothing but a key changed. */
async function chooseModel(connection: Connection, answers: Answers): Promise<v.InferOutput<typeof Default>> {
  const [{ providers }, now] = await callDaemon(connection, (client) =>
    Promise.all([client.call('GET', '/api/providers', Providers), client.call('GET', '/api/config/provider', Default)]),
  )
  const { isInteractive } = answers
  const usable = providers.filter(({ auth_status: status, error }) => status !== 'missing' && error === undefined)
  if (isInteractive && answers.provider === undefined)
    note(
      `With a key, or without need of one: ${usable.map(({ name }) => name).join(', ') || 'none'}. ` +
        `${commandLine('providers')} lists all.`,
    )
  const name = answers.provider ?? (isInteractive ? await ask('Provider', now.provider) : now.provider)
  const provider = providers.find((each) => each.name === name)
  if (!provider) {
    const nearest = suggest(
      findNearest(
        name,
        providers.map((each) => each.name),
      ),
    )
    throw new Failure(exits.notFound, `there is no provider "${name}"${nearest}`, `see ${commandLine('providers')}`)
  }
  await storeKey(connection, provider, answers)
  await testProvider(connection, name)
  const suggested = name === now.provider ? now.model : ''
  const model = answers.model ?? (isInteractive ? await ask('Model', suggested, 'the one the provider suggests') : '')
  if (name === now.provider && (model === '' || model === now.model)) return now
  return await callDaemon(connection, (client) =>
    client.call('PUT', '/api/config/provider', Default, {
      body: omitUndefined({ provider: name, model: model === '' ? undefined : model }),
    }),
  )
}

async function storeKey(connection: Connection, provider: Provider, answers: Answers): Promise<void> {
  const { name, auth_status: status, env_var: variable } = provider
  if (!answers.hasKeyOnStdin && status !== 'missing') return
  if (!answers.hasKeyOnStdin && !answers.isInteractive)
    throw new Failure(
      exits.usage,
      `${name} has no key`,
      `give it on standard input with --key-stdin${variable === undefined ? '' : `, or set ${variable} for the daemon`}`,
    )
  const key = await readSecret(`Key of ${name} (not shown): `)
  if (key === '') throw new Failure(exits.usage, 'no key was given', 'nothing was changed')
  await callDaemon(connection, (client) =>
    client.call('POST', `/api/providers/${encodeURIComponent(name)}/key`, v.looseObject({}), {
      body: { api_key: key },
    }),
  )
}

async function testProvider(connection: Connection, name: string): Promise<void> {
  const tested = await callDaemon(connection, (client) =>
    client.call('POST', `/api/providers/${encodeURIComponent(name)}/test`, Tested, { timeoutMs: TEST_MS }),
  )
  if (tested.status !== 'ok')
    throw new Failure(
      exits.failed,
      escapeControls(tested.error ?? `${name} does not work`),
      `correct it and repeat; ${commandLine(`providers set-key ${name}`)} replaces the key. No agent was made`,
    )
  note(`${name} answered in ${tested.latency_ms ?? 0} ms.`)
}

interface FirstAgent {
  readonly id: string
  readonly name: string
  /** `false` when there was one of this name already. */
  readonly isMade: boolean
}

async function makeAgent(connection: Connection, answers: Answers): Promise<FirstAgent> {
  const template = answers.template ?? (answers.isInteractive ? await chooseTemplate(connection) : FIRST)
  const name = answers.name ?? (answers.isInteractive ? await ask('Name of the agent', template) : undefined)
  return await callDaemon(connection, async (client) => {
    const existing = await findAgent(client, name ?? template)
    // A fresh home has one already, and to run the command again must not fail.
    if (existing && answers.name === undefined) {
      note(`There is an agent "${escapeControls(existing.name)}" already: it was left as it is.`)
      return { ...existing, isMade: false }
    }
    const made = await client.call('POST', '/api/agents', Agent, { body: omitUndefined({ template, name }) })
    for (const warning of made.warnings) note(`svc: warning: ${escapeControls(warning)}`)
    note(`The agent "${escapeControls(made.name)}" was made from the template ${template}.`)
    return { id: made.agent_id, name: made.name, isMade: true }
  })
}

async function chooseTemplate(connection: Connection): Promise<string> {
  const { templates } = await callDaemon(connection, listTemplates)
  note(`Templates: ${templates.map(({ name }) => escapeControls(name)).join(', ')}.`)
  return await ask('Template of the first agent', FIRST)
}

async function findAgent(client: DaemonClient, name: string) {
  const agents = await client.call('GET', '/api/agents', AgentNames)
  return agents.find((agent) => agent.name === name)
}
