import { Refusal } from 'svc/sdk'
import type { Catalog, CatalogModel } from '../catalog/contract.ts'
import type { Inference, ResolvedModel } from '../providers/contract.ts'

type ModelChoice = Parameters<Inference['resolve']>[0]
export interface VisionModelDeps {
  readonly inference: Inference
  readonly catalog: Catalog | undefined
  /** The operator's choice for images. */
  readonly configured: { readonly provider: string; readonly model: string } | undefined
}

/**
 * Chooses a model that accepts images: the operator's choice, else the agent's own. If the catalog knows that the
 * agent's model accepts none, another model of the same provider, so an image never reaches a provider that the agent's
 * text does not reach. Throws `invalid_request` with what to do if there is none.
 */
export async function resolveVisionModel(
  { inference, catalog, configured }: VisionModelDeps,
  own: ModelChoice,
): Promise<ResolvedModel> {
  if (configured) return inference.resolve(configured)
  const resolved = await inference.resolve(own)
  await catalog?.ready()
  const { provider, model } = resolved
  // A model that the catalog does not know is tried: the provider rejects the image if it cannot read it.
  if (catalog?.find(provider, model)?.supports.vision !== false) return resolved
  const defaultModel = inference.providers().find(({ name }) => name === provider)?.defaultModel
  const [other] = catalog
    .list(provider)
    .filter(({ supports }) => supports.vision === true)
    .sort(byPreference(defaultModel))
  if (!other)
    throw new Refusal(
      'invalid_request',
      `${provider} / ${model} cannot see, and ${provider} has no model that can: ` +
        'name one with [plugins.vision] see = { provider = "…", model = "…" }',
    )
  return inference.resolve({ ...own, provider, model: other.id })
}

/** The provider's default model first, then by price; a model without a known price comes last. */
const byPreference =
  (defaultModel: string | undefined) =>
  (a: CatalogModel, b: CatalogModel): number =>
    Number(b.id === defaultModel) - Number(a.id === defaultModel) ||
    inputPrice(a) - inputPrice(b) ||
    (a.id < b.id ? -1 : 1)
const inputPrice = ({ price }: CatalogModel): number => price?.input ?? Infinity
