import { Refusal } from 'svc/sdk'
import type { Catalog, CatalogModel } from '../catalog/contract.ts'
import type { Inference, ResolvedModel } from '../providers/contract.ts'

type Choice = Parameters<Inference['resolve']>[0]
export interface SeeingParts {
  readonly inference: Inference
  readonly catalog: Catalog | undefined
  /** What the operator names for pictures. */
  readonly configured: { readonly provider: string; readonly model: string } | undefined
}

/**
 * A model that can see. The operator's choice comes first, then the agent's own; where that is known to be blind,
 * another one of the same provider, so that a picture goes nowhere its agent's words do not go. Throws
 * `invalid_request` with what to do when there is none.
 */
export async function seeingModel(
  { inference, catalog, configured }: SeeingParts,
  own: Choice,
): Promise<ResolvedModel> {
  if (configured) return inference.resolve(configured)
  const resolved = await inference.resolve(own)
  await catalog?.ready()
  const { provider, model } = resolved
  // What nobody knows is asked: the provider says if it cannot.
  if (catalog?.find(provider, model)?.supports.vision !== false) return resolved
  const usual = inference.providers().find(({ name }) => name === provider)?.defaultModel
  const [other] = catalog
    .list(provider)
    .filter(({ supports }) => supports.vision === true)
    .sort(
      (a, b) =>
        Number(b.id === usual) - Number(a.id === usual) || inputPrice(a) - inputPrice(b) || (a.id < b.id ? -1 : 1),
    )
  if (!other)
    throw new Refusal(
      'invalid_request',
      `${provider} / ${model} cannot see, and ${provider} has no model that can: name one with [plugins.vision] see = { provider = "…", model = "…" }`,
    )
  return inference.resolve({ ...own, provider, model: other.id })
}

/** The cheapest of those whose price is known. */
const inputPrice = ({ price }: CatalogModel): number => price?.input ?? Infinity
