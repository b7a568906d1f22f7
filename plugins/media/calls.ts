import { commandLine, idempotencyKey, readJson, Refusal, UpstreamFailure } from 'svc/sdk'
import type { Counter, Hooks, PluginDatabase, Statement, ToolCallContext } from 'svc/sdk'
import { toUsd } from 'svc/providers'
import type { MediaKind, MediaOffer, MediaUsage } from 'svc/providers'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import { ModelCallStarting } from '../chat/contract.ts'
import type { Workspaces } from '../files/contract.ts'
import type { Inference, MediaCallOptions, MediaChoice, MediaModels, ResolvedModel } from '../providers/contract.ts'
import type { UsageLedger } from '../usage/contract.ts'
import { MediaCreated } from './contract.ts'
import type { Config } from './index.ts'
import { costOf, priceOf } from './prices.ts'
import type { MediaAmount } from './prices.ts'
import type { CallStore } from './store.ts'

export interface MediaDeps {
  readonly agents: Agents
  readonly audit: Audit
  readonly config: Config
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly hooks: Pick<Hooks, 'check' | 'emit'>
  readonly inference: Inference
  readonly media: MediaModels
  readonly store: CallStore
  readonly workspaces: Workspaces
  readonly made: Counter
  usage(): UsageLedger | undefined
}
/** Where a call goes, and what may be asked there. */
export interface Place {
  readonly agent: Agent
  readonly model: ResolvedModel
  readonly offer: MediaOffer
}
/** One call that costs something. */
export interface PaidCall<T> {
  readonly tool: string
  readonly kind: MediaKind
  readonly place: Place
  /** No less than the call can come to. */
  readonly most: MediaAmount
  make(options: MediaCallOptions): Promise<T>
  /** What it came to. */
  amount(made: T): MediaAmount & { readonly usage: MediaUsage }
  /** Writes the files. */
  keep(made: T, costUsd: number | null): Promise<Kept>
}
export interface Kept {
  /** In the workspace. */
  readonly files: readonly string[]
  /** What the agent is told. */
  readonly text: string
  /** Of a recording. */
  readonly transcript?: string
}
export interface Made extends Kept {
  readonly provider: string
  readonly model: string
  /** `null` when no price is known. */
  readonly costUsd: number | null
}

/** A call whose answer never arrived. */
export const OUTCOME_UNKNOWN =
  'unknown: the service stopped while the provider worked on this call, so it may have been paid for. ' +
  'It was not made again. Ask the user before you repeat it.'

/** The provider and model of a call: as configured, else the agent's own provider where it can, else the first. */
export async function choosePlace(
  { agents, config, inference, media }: MediaDeps,
  kind: MediaKind,
  agentId: string,
  requested?: string,
): Promise<Place> {
  const agent = await agents.require(agentId)
  const usable = media.usable(kind)
  const own = usable.find(({ provider }) => provider === agent.manifest.model.provider)
  const usual: MediaChoice | undefined = config[kind] ?? own ?? usable[0]
  if (!usual)
    throw new Refusal(
      'service_unavailable',
      `No provider with a key makes ${kind}: ${commandLine('providers set-key <provider>')} takes the key of one, and GET /api/media/providers lists those that can`,
    )
  const choice = requested === undefined ? usual : chosenBy(requested, usual, inference)
  const model = await media.resolve(kind, choice)
  // What an agent names has to count in its budget.
  if (requested !== undefined && !isPriced(config.prices, model))
    throw new Refusal(
      'invalid_request',
      `model: the price of ${model.provider}/${model.model} is unknown: leave model out, or name one with a price ` +
        '(plugins.media.prices)',
    )
  return { agent, model, offer: media.offer(choice.provider) ?? {} }
}
const isPriced = (own: MediaDeps['config']['prices'], { provider, model, price }: ResolvedModel): boolean =>
  price !== undefined || priceOf(own, provider, model) !== undefined

/** A model of the usual provider, or `provider/model` of another one that has its key. */
function chosenBy(requested: string, { provider }: MediaChoice, inference: Inference): MediaChoice {
  const slash = requested.indexOf('/')
  const prefix = requested.slice(0, Math.max(0, slash))
  const named = inference.providers().find(({ name, authStatus }) => name === prefix && authStatus !== 'missing')
  return named ? { provider: named.name, model: requested.slice(slash + 1) } : { provider, model: requested }
}

/**
 * Makes a call that costs something: within the budget, paid for once whatever ends the process, its cost recorded
 * before its files are written.
 */
export async function makeOnce<T>(deps: MediaDeps, call: ToolCallContext, paid: PaidCall<T>): Promise<Made> {
  const { store, db, config, hooks } = deps
  const id = idempotencyKey(call)
  const before = await findMade(store, id)
  if (before) return before
  const release = await reserve(deps, call, paid)
  const { kind, tool, place } = paid
  const { provider, model } = place.model
  try {
    await db.batch([store.begin({ id, agentId: call.agentId, tool, at: new Date().toISOString() })])
    const made = await requestOnce(deps, id, paid, { signal: call.signal, withinMs: config.timeout_secs * 1000 })
    const costUsd = await record(deps, { call, id, paid, made, release })
    const kept = await paid.keep(made, costUsd)
    const { text, ...detail }: Made = { ...kept, provider, model, costUsd }
    const { files } = kept
    await db.batch([
      store.done(id, text, JSON.stringify(detail)),
      ...files.map((file) =>
        deps.audit.entry({ event: 'file_access', agentId: call.agentId, details: `${tool} wrote "${file}"` }),
      ),
    ])
    await hooks.emit(MediaCreated, {
      kind,
      agentId: call.agentId,
      turnId: call.turnId,
      tool,
      provider,
      model,
      files,
      costUsd,
    })
    return { text, ...detail }
  } finally {
    const statements = release()
    if (statements.length > 0) await db.batch(statements)
  }
}

/** What the call with this id made; `undefined` when there is none. Throws `conflict` when nobody knows. */
export async function findMade(store: CallStore, id: string): Promise<Made | undefined> {
  const row = await store.find(id)
  if (!row) return undefined
  if (row.state !== 'done') throw new Refusal('conflict', OUTCOME_UNKNOWN)
  const unknown = { files: [], provider: '', model: '', costUsd: null }
  const detail = row.detail === null ? unknown : (readJson(row.detail) as Omit<Made, 'text'>)
  return { text: row.result ?? '', ...detail }
}

async function requestOnce<T>(deps: MediaDeps, id: string, paid: PaidCall<T>, options: MediaCallOptions): Promise<T> {
  const { provider } = paid.place.model
  try {
    const made = await paid.make(options)
    deps.made.add(1, { tool: paid.tool, provider, outcome: 'made' })
    return made
  } catch (error) {
    deps.made.add(1, { tool: paid.tool, provider, outcome: 'failed' })
    if (isRefused(error)) await deps.db.batch([deps.store.remove(id)])
    throw error
  }
}

const UNCERTAIN: ReadonlySet<string> = new Set(['timeout', 'cut', 'network', 'malformed'])
/** Whether nothing was made, so that the call may be made again. */
function isRefused(error: unknown): boolean {
  return error instanceof Refusal || (error instanceof UpstreamFailure && !UNCERTAIN.has(error.reason))
}

/** Releases what listeners reserved, once; returns the statements that record it. */
type Release = () => readonly Statement[]

/** Applies the hook of every call of a model, with the highest cost as a price of the call itself. */
async function reserve<T>({ hooks, config }: MediaDeps, call: ToolCallContext, paid: PaidCall<T>): Promise<Release> {
  const { agent, model } = paid.place
  const { nano } = costOf(priceOf(config.prices, model.provider, model.model), model.price, paid.most)
  let releases: Release[] = []
  await hooks.check(ModelCallStarting, {
    agent,
    turnId: call.turnId,
    sessionId: call.sessionId,
    model: { ...model, price: nano === null ? undefined : { input: 0, output: 0, request: toUsd(nano) } },
    maxTokens: paid.most.usage?.tokens ?? { input: 0, output: 0 },
    onRelease: (release) => {
      releases.push(release)
    },
  })
  return () => {
    const pending = releases
    releases = []
    return pending.flatMap((release) => release())
  }
}

/** Adds the call to the usage ledger and the audit trail, in one batch with the release of its reservation. */
async function record<T>(
  { audit, config, db, store, usage }: MediaDeps,
  {
    call,
    id,
    paid,
    made,
    release,
  }: {
    readonly call: ToolCallContext
    readonly id: string
    readonly paid: PaidCall<T>
    readonly made: T
    readonly release: Release
  },
): Promise<number | null> {
  const { agentId, sessionId, turnId } = call
  const { provider, model, price } = paid.place.model
  const amount = paid.amount(made)
  const { nano, estimated } = costOf(priceOf(config.prices, provider, model), price, amount)
  const costUsd = toUsd(nano)
  const tokens = amount.usage.tokens ?? { input: 0, output: 0 }
  const ledger = usage()
  const cost = costUsd === null ? 'at an unknown price' : `for ${costUsd.toFixed(4)} USD`
  await db.batch([
    ...release(),
    ...(ledger
      ? [
          ledger.entry({
            agentId,
            sessionId,
            turnId,
            provider,
            model,
            inputTokens: tokens.input,
            outputTokens: tokens.output,
            cachedInputTokens: 0,
            costUsd,
            estimated,
          }),
        ]
      : []),
    audit.entry({ event: 'network_access', agentId, details: `${paid.tool} with ${provider}/${model} ${cost}` }),
    store.paid(id),
  ])
  return costUsd
}

/** The beginning of the names of a call's files. */
export function fileStem(kind: string, call: ToolCallContext): string {
  return `media/${kind}-${idempotencyKey(call).replaceAll('-', '').slice(0, 12)}`
}

/** The smaller limit, with who set it. */
export function limitOf(
  own: number,
  key: string,
  vendor: number | undefined,
  provider: string,
): { readonly max: number; readonly by: string } {
  return vendor !== undefined && vendor < own
    ? { max: vendor, by: `of ${provider}` }
    : { max: own, by: `[plugins.media] ${key}` }
}
export const costText = (usd: number | null): string => (usd === null ? 'cost unknown' : `$${usd.toFixed(4)}`)
