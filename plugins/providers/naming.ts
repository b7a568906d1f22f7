import { findNearest, listNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Catalog } from '../catalog/contract.ts'
import type { Connections } from './connection.ts'
import type { Inference } from './contract.ts'
import { isDefault, PREFERENCE } from './default-model.ts'
import type { DefaultModel } from './default-model.ts'
import type { Ollama } from './ollama.ts'

export const BUILTIN = 'builtin'
/** Other providers of a model that a warning names at most. */
const SHOWN = 3

const rank = (provider: string | undefined): number => {
  if (provider === undefined) return Infinity
  const at = PREFERENCE.indexOf(provider)
  return at < 0 ? PREFERENCE.length : at
}

export interface NamingDeps {
  readonly connections: Connections
  readonly defaults: DefaultModel
  readonly ollama: Ollama
  readonly catalog: () => Catalog | undefined
}
interface Choice {
  readonly provider: string
  readonly model: string
}
export interface Naming extends Pick<Inference, 'choose' | 'doubt' | 'defaultProblem'> {
  /** Whose a model is that an agent names without its provider. */
  place(model: string): Promise<Choice>
}

/**
 * What a model's name stands for. Every place where somebody names a model asks here, so that one name means one
 * model.
 */
export function createNaming({ connections, defaults, ollama, catalog }: NamingDeps): Naming {
  async function read(): Promise<Catalog | undefined> {
    const found = catalog()
    await found?.ready()
    return found
  }
  const installed = async (provider: string): Promise<readonly string[]> =>
    provider === 'ollama' && connections.driver(provider) ? (await ollama.detected()).models : []

  /** Whether a provider is known to have a model of exactly this name. */
  async function lists(provider: string, model: string): Promise<boolean> {
    const section = connections.section(provider)
    if (section?.default_model === model || Object.hasOwn(section?.prices ?? {}, model)) return true
    if (connections.driver(provider)?.driver.defaultModel === model) return true
    const known = await read()
    if (known?.find(connections.catalogName(provider), model)) return true
    const usual = await defaults.find()
    if (usual.provider === provider && usual.model === model) return true
    return (await installed(provider)).includes(model)
  }

  async function choose(wanted: string, own: string): Promise<Choice> {
    if (isDefault(wanted)) return { provider: own, model: wanted }
    const provider = isDefault(own) ? (await defaults.find()).provider : own
    if (await lists(provider, wanted)) return { provider: own, model: wanted }
    const known = await read()
    const alias = known?.resolveAlias(wanted)
    if (alias) return alias
    const slash = wanted.indexOf('/')
    const [prefix, rest] = [wanted.slice(0, Math.max(0, slash)), wanted.slice(slash + 1)]
    if (prefix === '' || rest === '' || !connections.driver(prefix)) return { provider: own, model: wanted }
    // A provider that calls its models by their maker may have a new one that nobody listed yet.
    const isMaker = known?.list(connections.catalogName(provider)).some(({ id }) => id.startsWith(`${prefix}/`))
    return isMaker && !(await lists(prefix, rest))
      ? { provider: own, model: wanted }
      : { provider: prefix, model: rest }
  }

  async function place(model: string): Promise<Choice> {
    const usual = await defaults.find()
    // A model that was meant for a real provider is unknown to the offline one.
    if (isDefault(model) || usual.provider === BUILTIN) return usual
    const chosen = await choose(model, usual.provider)
    if (chosen.provider !== usual.provider || (await lists(usual.provider, chosen.model))) return chosen
    const known = await read()
    const other = known && defaults.keyed().find((one) => known.find(connections.catalogName(one), model))
    return { provider: other ?? usual.provider, model }
  }

  async function doubt(choice: Choice): Promise<string | undefined> {
    if (isDefault(choice.model)) return isDefault(choice.provider) ? undefined : noProvider(choice.provider)
    const { provider, model } = isDefault(choice.provider) ? await place(choice.model) : choice
    if (isDefault(choice.provider) && provider === BUILTIN && model !== choice.model)
      return unplaced(choice.model, await read())
    const missing = noProvider(provider)
    if (missing !== undefined) return missing
    const known = await read()
    const vendor = connections.catalogName(provider)
    const count = (known?.list(vendor).length ?? 0) + (await installed(provider)).length
    if (
      !known ||
      (count === 0 && provider !== BUILTIN) ||
      (await lists(provider, model)) ||
      known.resolveAlias(model)?.provider === vendor
    )
      return undefined
    const others = known
      .list()
      .filter(({ provider: name, id }) => (id === model || `${name}/${id}` === model) && connections.driver(name))
      .map(({ provider: name, id }) => `${name}/${id}`)
    const more = others.length > SHOWN ? ` and ${others.length - SHOWN} more` : ''
    return `provider ${provider} has no model "${model}" that is known here; ${
      others.length > 0
        ? `there is ${others.slice(0, SHOWN).join(', ')}${more}`
        : `${await nearest(provider, model)}GET /api/models lists those there are, POST /api/models/custom adds one`
    }`
  }
  const noProvider = (provider: string): string | undefined =>
    connections.driver(provider)
      ? undefined
      : `there is no provider "${provider}"${suggest(findNearest(provider, connections.names()))}; there are ${connections.names().toSorted().join(', ') || 'none'}`

  /** Why the offline model answers for a model, and what was meant perhaps. */
  function unplaced(model: string, known: Catalog | undefined): string {
    const makers = new Map<string, string>()
    // Of several providers of a model the preferred one is named.
    for (const { provider, id } of known?.list() ?? [])
      if (connections.driver(provider) && rank(provider) < rank(makers.get(id))) makers.set(id, provider)
    const near = listNearest(model.slice(model.indexOf('/') + 1), makers.keys())
    return `no provider that can be used has a model "${model}", so the built-in offline model answers; ${
      near.length === 0
        ? 'GET /api/models lists those there are'
        : `the nearest: ${near.map((id) => `${makers.get(id)}/${id}`).join(', ')}`
    }`
  }

  async function nearest(provider: string, model: string): Promise<string> {
    const ids = (await read())?.list(connections.catalogName(provider)).map(({ id }) => id) ?? []
    const near = listNearest(model, [...ids, ...(await installed(provider))])
    return near.length === 0 ? '' : `the nearest: ${near.join(', ')}; `
  }

  /** Not only what the choice stands for: also what was configured and did not become it. */
  async function defaultProblem(): Promise<string | undefined> {
    const { model: wanted } = defaults.wanted()
    const { provider, model } = await defaults.find()
    if (provider === BUILTIN && wanted !== undefined && !isDefault(wanted) && model !== wanted)
      return `default_model is "${wanted}": ${unplaced(wanted, await read())}`
    try {
      await connections.open({ provider })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return error.message
    }
    return undefined
  }

  return { choose, place, doubt, defaultProblem }
}
