import type * as v from 'valibot'
import type { ChannelAdapter } from 'svc/channels'
import { findNearest, suggest, toIso } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'
import { commonFields, fieldsOf, withFieldDefaults } from '../accounts/fields.ts'
import type { Field } from '../accounts/fields.ts'
import { redactConfig } from '../accounts/service.ts'
import type { AccountEntry, Accounts } from '../accounts/service.ts'
import { DEFAULT_ACCOUNT } from '../accounts/account-id.ts'
import type { AccountConnections } from '../connections/account-connections.ts'
import type { AdapterRegistry } from '../connections/registry.ts'
import { canonicalName, retirementOf } from '../names.ts'
import { helpFor } from './help.ts'
import { knownChannels } from './known-channels.ts'
import type { ChannelName } from './known-channels.ts'
import { setupGuide } from '../setup-guide.ts'
import type { SetupGuide } from '../setup-guide.ts'
import type { ChannelList, ChannelView, Status } from './schema.ts'

/** What of an account waits to be sent, and what the policies warn of. */
export interface TrafficInfo {
  counts(channel: string, accountId: string): Promise<{ readonly outbox: number; readonly deadLetters: number }>
  warnings(entry: AccountEntry): Promise<readonly string[]>
}
export interface ViewDeps {
  readonly accounts: Accounts
  readonly connections: AccountConnections
  readonly registry: AdapterRegistry
  readonly traffic: TrafficInfo
}
type StatusView = v.InferOutput<typeof Status>
type Row = v.InferOutput<typeof ChannelList>['channels'][number]

/** Every channel that is known by name or has an adapter, in the order of the list of names. */
export function allChannels(registry: AdapterRegistry): readonly ChannelName[] {
  const known = knownChannels()
  const names = new Set(known.map(({ name }) => name))
  return [...known, ...registry.list().filter(({ name }) => !names.has(name))]
}
/** Throws `channel_not_found`. */
export function requireChannel(registry: AdapterRegistry, given: string): ChannelName {
  const name = canonicalName(given)
  const all = allChannels(registry)
  const channel = all.find((one) => one.name === name)
  if (!channel) {
    const names = all.map((one) => one.name)
    const hint = suggest(findNearest(given, names)) || `: ${commandLine('channels list --all')} has those there are`
    throw new Refusal('channel_not_found', `There is no channel "${given}"${hint}`)
  }
  return channel
}
/** The account a request means: the one it names, else the only one, else `default`. */
export function chooseAccount(entries: readonly AccountEntry[], channel: string, id: string | undefined): string {
  const own = entries.filter((entry) => entry.channel === channel)
  return id ?? (own.length === 1 ? own[0]?.id : undefined) ?? DEFAULT_ACCOUNT
}

/** Every channel, with how it is set up. */
export function toRows(
  deps: Pick<ViewDeps, 'connections' | 'registry'>,
  entries: readonly AccountEntry[],
): Promise<Row[]> {
  return Promise.all(
    allChannels(deps.registry).map(async (channel) => ({
      ...toRow(deps, channel, entries),
      ...(await guideOf(deps.registry, channel)),
    })),
  )
}
async function guideOf(registry: AdapterRegistry, { name, title }: ChannelName): Promise<SetupGuide> {
  return setupGuide(title, (await registry.find(name)?.setup?.())?.default)
}

function toRow(
  { connections, registry }: Pick<ViewDeps, 'connections' | 'registry'>,
  { name, title, category, description }: ChannelName,
  entries: readonly AccountEntry[],
): Omit<Row, keyof SetupGuide> {
  const own = entries.filter(({ channel }) => channel === name)
  const states = own.map((entry) => connections.status(entry).state)
  return {
    name,
    display_name: title,
    category,
    description,
    available: registry.find(name) !== undefined,
    configured: own.length > 0,
    enabled: own.some(({ enabled }) => enabled),
    has_token: own.length > 0 && own.every((entry) => hasCredentials(connections, entry)),
    state:
      states.find((state) => state !== 'connected' && state !== 'disabled') ?? states[0] ?? unconfigured(name).state,
    accounts: own.length,
  }
}

export async function statusOf({ connections, traffic }: ViewDeps, entry: AccountEntry): Promise<StatusView> {
  const status = connections.status(entry)
  const { outbox, deadLetters } = await traffic.counts(entry.channel, entry.id)
  const iso = (ms: number | undefined): string | null => (ms === undefined ? null : toIso(ms))
  return {
    state: status.state,
    connected: status.state === 'connected',
    started_at: iso(status.startedAt),
    last_message_at: iso(status.lastMessageAt),
    messages_received: status.messagesReceived,
    messages_sent: status.messagesSent,
    failed: status.failed,
    outbox,
    dead_letters: deadLetters,
    next_retry_at: iso(status.nextRetryAt),
    last_error: status.lastError ?? null,
    help: helpFor(entry, status.state) ?? null,
    warnings: [...(await traffic.warnings(entry)), ...connections.warnings(entry)],
  }
}
const notConfigured: StatusView = {
  state: 'not_configured',
  connected: false,
  started_at: null,
  last_message_at: null,
  messages_received: 0,
  messages_sent: 0,
  failed: 0,
  outbox: 0,
  dead_letters: 0,
  next_retry_at: null,
  last_error: null,
  help: null,
  warnings: [],
}
/** The status of a channel without an account. */
function unconfigured(name: string): StatusView {
  const retirement = retirementOf(name)
  return retirement === undefined ? notConfigured : { ...notConfigured, state: 'retired', last_error: retirement }
}

export async function toView(
  deps: ViewDeps,
  channel: ChannelName,
  accountId: string | undefined,
): Promise<v.InferOutput<typeof ChannelView>> {
  const { accounts, registry } = deps
  const { name } = channel
  const adapter = await registry.loadIfAdded(name)
  const entries = await accounts.list()
  const own = entries.filter((entry) => entry.channel === name)
  const id = chooseAccount(entries, name, accountId)
  if (accountId !== undefined && !own.some((entry) => entry.id === accountId))
    throw new Refusal('not_found', `${name} has no account "${accountId}"`)
  const list = await Promise.all(
    own.map(async (entry) => ({
      account_id: entry.id,
      source: entry.source,
      enabled: entry.enabled,
      has_token: hasCredentials(deps.connections, entry),
      sign_in: adapter !== undefined && signsIn(adapter, entry.config),
      config: redactConfig(entry, adapter),
      status: await statusOf(deps, entry),
    })),
  )
  const chosen = list.find(({ account_id: one }) => one === id)
  return {
    ...toRow(deps, channel, entries),
    ...(await guideOf(registry, channel)),
    config: chosen?.config ?? {},
    status: chosen?.status ?? unconfigured(name),
    account_list: list,
    fields: fieldList(adapter, chosen?.config ?? {}),
    sign_in: adapter !== undefined && signsIn(adapter, own.find((entry) => entry.id === id)?.config ?? {}),
    webhook_path: `/api/channels/${name}/webhook${id === DEFAULT_ACCOUNT ? '' : `/${id}`}`,
    config_template: configTemplate(name, adapter ? fieldsOf(adapter.config) : []),
  }
}

/** An account that signs in has nothing to sign in with until a phone is linked. */
function hasCredentials(connections: ViewDeps['connections'], entry: AccountEntry): boolean {
  return entry.hasToken && connections.status(entry).state !== 'needs_login'
}

/** Whether an account of this configuration, which lacks its secrets, signs in with a QR code. */
function signsIn(adapter: ChannelAdapter, config: Readonly<Record<string, unknown>>): boolean {
  if (adapter.signIn === undefined) return false
  return adapter.usesSignIn?.(withFieldDefaults(adapter.config, config)) ?? true
}

function fieldList(adapter: ChannelAdapter | undefined, config: Readonly<Record<string, unknown>>) {
  const fields = adapter ? [...fieldsOf(adapter.config), ...commonFields()] : []
  return fields.map(({ options, ...field }) => {
    const value = config[field.key]
    const hasValue = value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0)
    // Variables are named in the file only, and freely: `token_env = "NAME"`.
    const forClients = { placeholder: field.type === 'list' ? 'one, two' : '', env_var: null }
    return { ...field, ...forClients, has_value: hasValue, ...(options && { options: [...options] }) }
  })
}

function configTemplate(name: string, fields: readonly Field[]): string {
  const samples = { secret: '"…"', text: '"…"', choice: '"…"', number: '0', boolean: 'true', list: '[]' }
  const lines = fields
    .filter(({ required }) => required)
    .map(({ key, type, description }) => `${key} = ${samples[type]}${description === '' ? '' : ` # ${description}`}`)
  return [`[channels.${name}]`, ...lines, 'agent_name = "assistant"', 'allowed_users = []', ''].join('\n')
}
