import { hash } from 'node:crypto'
import * as v from 'valibot'
import { canonicalJson, MASK, namesSecret, readOwnJson } from 'svc/internal'
import { isObject, KeyedQueue, omitUndefined, parse, Refusal } from 'svc/sdk'
import type { Statement, Vault } from 'svc/sdk'
import type { ChannelAdapter } from 'svc/channels'
import type { Audit } from '../../audit/contract.ts'
import { loginPrefix } from '../connections/link.ts'
import type { AdapterRegistry } from '../connections/registry.ts'
import { accountKey } from './account.ts'
import type { Account } from './account.ts'
import { mergeFields } from './changes.ts'
import { requiredSecrets, secretFields } from './fields.ts'
import { readFileAccounts, splitFields } from './file-accounts.ts'
import type { FileAccount } from './file-accounts.ts'
import { AccountSettings } from './settings.ts'
import type { AccountRow, AccountStore } from './store.ts'
import { describeUnknownFields } from './unknown-fields.ts'

type Table = Readonly<Record<string, unknown>>

/** An account as it is listed. `config` of the API has no secrets; that of the file may have them. */
export interface AccountEntry extends Account {
  readonly hasToken: boolean
  /** Names of secrets in the vault. */
  readonly secretNames: readonly string[]
  /** What is wrong with its section of the file. */
  readonly problem: string | undefined
}
export interface AccountsDeps {
  /** `[channels]` of the file. */
  readonly section: Table
  readonly store: AccountStore
  readonly vault: Vault
  readonly audit: Pick<Audit, 'entry'>
  readonly registry: AdapterRegistry
  /** For each batch that changes an account: other daemons connect them too. */
  readonly tellChanged: () => readonly Statement[]
  readonly commit: (statements: readonly Statement[]) => Promise<unknown>
  /** Throws for an address that the API may not name: only the file may name private ones. */
  readonly admit: (url: string) => Promise<void>
  /** Statements that remove what the connections of an account left. */
  readonly forget: (channel: string, id: string) => readonly Statement[]
  readonly maxAccounts: number
  readonly now: () => string
}
export interface ConfigureRequest {
  readonly channel: string
  readonly id: string
  readonly enabled: boolean | undefined
  readonly fields: Table
  /** Says what is wrong with it, and makes nothing. */
  readonly isCheck?: boolean
}

/** The accounts of the file and of the API. The file wins: the API does not change what is in it. */
export class Accounts {
  readonly #deps: AccountsDeps
  readonly #queue = new KeyedQueue()
  #file: readonly FileAccount[]
  /** Accounts whose row says another configuration than their secrets were entered for, as it was then. */
  readonly #moved = new Map<string, string>()
  constructor(deps: AccountsDeps) {
    this.#deps = deps
    this.#file = readFileAccounts(deps.section)
  }

  /** The file has changed. */
  replaceFile(section: Table): void {
    this.#file = readFileAccounts(section)
  }

  async list(): Promise<readonly AccountEntry[]> {
    const rows = await this.#deps.store.list()
    const ofFile = this.#file.map((account) => this.#fileEntry(account, rows))
    const known = new Set(ofFile.map(({ channel, id }) => accountKey(channel, id)))
    const ofApi = rows.flatMap((row) =>
      row.config === null || known.has(accountKey(row.channel, row.account_id)) ? [] : [this.#toEntry(row)],
    )
    return [...ofFile, ...ofApi]
  }
  async find(channel: string, id: string): Promise<AccountEntry | undefined> {
    return (await this.list()).find((entry) => entry.channel === channel && entry.id === id)
  }
  /** With its secrets. Throws `conflict` when they were entered for another configuration than its row says. */
  async resolve(entry: AccountEntry): Promise<Account> {
    const secrets = entry.secretNames.length === 0 ? {} : await this.#secretsFor(entry)
    const { channel, id, enabled, source, settings, unsetVariables } = entry
    // Only what a connection depends on: it is opened anew when that changes. What the file says holds.
    return {
      channel,
      id,
      enabled,
      source,
      settings,
      ...omitUndefined({ unsetVariables }),
      config: entry.source === 'file' ? { ...secrets, ...entry.config } : { ...entry.config, ...secrets },
    }
  }

  /** Throws `invalid_request` that names the field, and `conflict` for an account of the file. */
  configure(request: ConfigureRequest): Promise<void> {
    return this.#queue.run(accountKey(request.channel, request.id), () => this.#configure(request))
  }
  /** Removes the account with its secrets. */
  remove(channel: string, id: string): Promise<void> {
    return this.#queue.run(accountKey(channel, id), () => this.#remove(channel, id))
  }
  /** Throws `conflict` where the file says whether it is enabled. */
  setEnabled(channel: string, id: string, enabled: boolean): Promise<void> {
    return this.#queue.run(accountKey(channel, id), () => this.#setEnabled(channel, id, enabled))
  }

  #fileEntry(account: FileAccount, rows: readonly AccountRow[]): AccountEntry {
    const row = rows.find(({ channel, account_id: id }) => channel === account.channel && id === account.id)
    const enabled = account.isSwitchedByFile || row === undefined ? account.enabled : row.enabled
    const adapter = this.#deps.registry.loaded(account.channel)
    const needed = adapter ? requiredSecrets(adapter.config) : ['token']
    const secretNames = (row?.secrets ?? []).filter((key) => account.config[key] === undefined)
    const hasToken = needed.every((key) => secretNames.includes(key) || (account.config[key] ?? '') !== '')
    return { ...account, enabled, hasToken, secretNames }
  }

  async #configure({ channel, id, enabled, fields, isCheck = false }: ConfigureRequest): Promise<void> {
    const { store, registry, vault, commit, admit, now } = this.#deps
    const known = await this.find(channel, id)
    const adapter = await registry.load(channel)
    const [unknown] = describeUnknownFields(adapter, fields)
    if (unknown !== undefined) throw new Refusal('invalid_request', unknown)
    if (known?.source === 'file') return this.#addSecrets(known, adapter, fields)
    if (!known) await this.#checkRoom()
    const merged = mergeFields(adapter, {
      settings: known?.settings ?? {},
      config: known?.config ?? {},
      secrets: known ? await this.#secretsFor(known).catch(noneIfMoved) : {},
      changes: fields,
    })
    for (const url of merged.newAddresses) await admit(url)
    if (isCheck) return
    const row: AccountRow = {
      channel,
      account_id: id,
      enabled: enabled ?? known?.enabled ?? true,
      settings: merged.settings,
      config: merged.config,
      secrets: Object.keys(merged.secrets),
      has_token: requiredSecrets(adapter.config).every((key) => key in merged.secrets),
    }
    const statements = [
      store.save(row, now()),
      ...this.#record(channel, id, `configured: ${Object.keys(fields).join(', ')}`),
    ]
    if (row.secrets.length === 0) await commit(statements)
    else await vault.write(vaultName(channel, id), recordOf(merged.secrets, merged.config), statements)
    this.#moved.delete(accountKey(channel, id))
  }

  /** Secrets that the file does not have: they go where the operator's file says, so they may come over the API. */
  async #addSecrets(known: AccountEntry, adapter: ChannelAdapter, fields: Table): Promise<void> {
    const { store, vault, now } = this.#deps
    const { channel, id, enabled, settings, config } = known
    const allowed = new Set(secretFields(adapter.config).filter((key) => config[key] === undefined))
    if (!Object.keys(fields).every((key) => allowed.has(key))) throw fileWins(channel, 'its configuration')
    const { secrets } = mergeFields(adapter, {
      settings,
      config,
      secrets: await this.#readSecrets(channel, id),
      changes: fields,
    })
    const own = Object.fromEntries(Object.entries(secrets).filter(([key]) => allowed.has(key)))
    const row = { channel, account_id: id, enabled, settings: null, config: null, has_token: true }
    await vault.write(vaultName(channel, id), JSON.stringify(own), [
      store.save({ ...row, secrets: Object.keys(own) }, now()),
      ...this.#record(channel, id, `given secrets: ${Object.keys(fields).join(', ')}`),
    ])
  }

  async #checkRoom(): Promise<void> {
    const { maxAccounts } = this.#deps
    if ((await this.list()).length >= maxAccounts)
      throw new Refusal('conflict', `There are ${maxAccounts} accounts: raise [plugins.channels] max_accounts`)
  }

  async #remove(channel: string, id: string): Promise<void> {
    const { store, vault, forget } = this.#deps
    const known = await this.find(channel, id)
    if (!known) throw new Refusal('not_found', `${channel} has no account "${id}"`)
    if (known.source === 'file') throw fileWins(channel, 'it')
    const logins = (await vault.names()).filter((name) => name.startsWith(loginPrefix(channel, id)))
    for (const name of logins) await vault.remove(name)
    await vault.remove(vaultName(channel, id), [
      store.remove(channel, id),
      ...forget(channel, id),
      ...this.#record(channel, id, 'removed'),
    ])
  }

  async #setEnabled(channel: string, id: string, enabled: boolean): Promise<void> {
    const { store, commit, now } = this.#deps
    const known = await this.find(channel, id)
    if (!known) throw new Refusal('conflict', `${channel} is not configured: POST /api/channels/${channel}/configure`)
    const isSwitchedByFile = this.#file.some((one) => one.channel === channel && one.id === id && one.isSwitchedByFile)
    if (isSwitchedByFile && known.enabled !== enabled) throw fileWins(channel, 'enabled')
    if (known.enabled === enabled) return
    await commit([
      store.setEnabled(channel, id, enabled, now()),
      ...this.#record(channel, id, enabled ? 'enabled' : 'disabled'),
    ])
  }

  #record(channel: string, id: string, what: string): readonly Statement[] {
    const { audit, tellChanged } = this.#deps
    const details = `channel ${accountKey(channel, id)} ${what}`
    return [audit.entry({ event: 'channel_changed', details }), ...tellChanged()]
  }
  async #readSecrets(channel: string, id: string): Promise<Table> {
    const { [CONFIG]: _, ...secrets } = await this.#readRecord(channel, id)
    return secrets
  }
  async #readRecord(channel: string, id: string): Promise<Table> {
    const text = await this.#deps.vault.read(vaultName(channel, id))
    const record: unknown = text === undefined ? {} : readOwnJson(text)
    return isObject(record) ? record : {}
  }
  /**
   * Of an account of the API only what was entered for its present configuration, which may say where secrets are sent:
   * who can write to the database only can change its row. Those of the version before belong to what the row says when
   * this version first reads it.
   */
  async #secretsFor({ channel, id, source, config }: AccountEntry): Promise<Table> {
    const { [CONFIG]: enteredFor, ...secrets } = await this.#readRecord(channel, id)
    if (source === 'file' || Object.keys(secrets).length === 0) return secrets
    const key = accountKey(channel, id)
    const present = digestOf(config)
    if (enteredFor === undefined) await this.#deps.vault.write(vaultName(channel, id), recordOf(secrets, config))
    else if (enteredFor !== present) {
      this.#moved.set(key, present)
      throw new Refusal('conflict', `channel ${key}: ${MOVED}`)
    }
    this.#moved.delete(key)
    return secrets
  }
  #toEntry(row: AccountRow): AccountEntry {
    const entry = toEntry(row)
    const isMoved = this.#moved.get(accountKey(entry.channel, entry.id)) === digestOf(entry.config)
    return isMoved ? { ...entry, problem: entry.problem ?? MOVED } : entry
  }
}

/**
 * Of the record in the vault: a digest of the configuration that its secrets were entered for, since every text in the
 * vault counts as a secret. No field is called so.
 */
const CONFIG = ''
const digestOf = (config: Table): string => hash('sha256', canonicalJson(config))
const MOVED =
  'its row says another configuration than its secrets were entered for. Somebody changed it in the database: ' +
  'configure it again with its secrets, or remove it'
const recordOf = (secrets: Table, config: Table): string => JSON.stringify({ ...secrets, [CONFIG]: digestOf(config) })
function noneIfMoved(error: unknown): Table {
  if (error instanceof Refusal && error.code === 'conflict') return {}
  throw error
}
const vaultName = (channel: string, id: string): string => `account/${channel}/${id}`

function toEntry(row: AccountRow): AccountEntry {
  // A newer version may accept less: that is a problem of this account alone.
  const settings = v.safeParse(AccountSettings, row.settings ?? {})
  const [issue] = settings.success ? [] : settings.issues
  return {
    channel: row.channel,
    id: row.account_id,
    enabled: row.enabled,
    source: 'api',
    settings: settings.success ? settings.output : parse(AccountSettings, {}),
    config: row.config ?? {},
    hasToken: row.has_token,
    secretNames: row.secrets,
    problem: issue && `${v.getDotPath(issue) ?? 'settings'}: ${issue.message}; configure it again`,
  }
}
function fileWins(channel: string, what: string): Refusal {
  return new Refusal(
    'conflict',
    `config.toml has [channels.${channel}] and decides ${what}: change it there; the API does not change the file`,
  )
}

/** The configuration of an account for people: secrets are masked. */
export function redactConfig(entry: AccountEntry, adapter: ChannelAdapter | undefined): Record<string, unknown> {
  const secrets = new Set(adapter ? secretFields(adapter.config) : [])
  const { own } = splitFields(entry.config)
  const shown = Object.entries(own).map(([key, value]) => [
    key,
    secrets.has(key) || namesSecret(key) ? MASK : withoutPassword(value),
  ])
  return {
    ...entry.settings,
    ...Object.fromEntries(shown),
    ...Object.fromEntries(entry.secretNames.map((key) => [key, MASK])),
  }
}
const withoutPassword = (value: unknown): unknown =>
  typeof value === 'string' ? value.replace(/^([a-z][a-z\d+.-]*:\/\/)[^\s/?#@]+@/i, '$1***@') : value
