import { findNearest, suggest } from 'svc/internal'
import type { Catalog, CatalogModel } from '../../catalog/contract.ts'
import type { Inference } from '../../providers/contract.ts'

/** Of one provider in the short list, and of a provider that was asked for. */
const SHORT = 8
const LONG = 200

/** What can be chosen now: a few models of each provider that can be used, or all of one. */
export async function listModels(
  inference: Inference,
  catalog: Catalog | undefined,
  providerName: string,
): Promise<string> {
  const [chosen] = await Promise.all([inference.defaultModel(), catalog?.ready()])
  const providers = inference.providers()
  if (providerName !== '') {
    const provider = providers.find(({ name }) => name === providerName.toLowerCase())
    if (!provider) {
      const nearest = findNearest(
        providerName,
        providers.map(({ name }) => name),
      )
      return `There is no provider "${providerName.slice(0, 50)}"${suggest(nearest) || '.'} /providers lists them.`
    }
    const models = catalog?.list(provider.name) ?? []
    const more = models.length > LONG ? `\n… and ${models.length - LONG} more: GET /api/models` : ''
    return models.length === 0
      ? `${provider.name}: ${provider.defaultModel}`
      : `${models.slice(0, LONG).map(toLine).join('\n')}${more}`
  }
  const lines = providers
    .filter(({ authStatus }) => authStatus !== 'missing')
    .map(({ name, defaultModel }) => {
      const first = name === chosen.provider ? `${chosen.model} (used when an agent names none)` : defaultModel
      const others = (catalog?.list(name) ?? []).filter(({ id }) => id !== defaultModel && id !== chosen.model)
      const more = others.length > SHORT ? ` and ${others.length - SHORT} more` : ''
      return `${name}: ${first}${others
        .slice(0, SHORT)
        .map(({ id }) => `, ${id}`)
        .join('')}${more}`
    })
  if (lines.length === 0) return 'No provider can be used now.'
  const hint = '/models <provider> lists all of one. /model <provider>/<model> takes any model a provider has.'
  return `${lines.join('\n')}\n\n${hint}`
}

export async function listProviders(inference: Inference, catalog: Catalog | undefined): Promise<string> {
  await catalog?.ready()
  return inference
    .providers()
    .map(({ name, title, authStatus }) => {
      const count = catalog?.list(name).length ?? 0
      return `${name} (${title}): ${authStatus.replaceAll('_', ' ')}${count === 0 ? '' : `, ${count} models`}`
    })
    .join('\n')
}

function toLine({ id, contextWindow, price }: CatalogModel): string {
  const window = contextWindow === null ? '' : `, ${contextWindow.toLocaleString('en')} tokens`
  return `${id}${window}${price === null ? '' : `, $${price.input} in and $${price.output} out per million`}`
}
