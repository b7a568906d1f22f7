import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import type { ManifestDocument } from './manifest-schema.ts'
import type { ChooseModel, NameModel } from './model-names.ts'

const Choice = v.object({ provider: v.string(), model: v.string() })
/** What mode `Stable` pins: the model and the fallbacks that `default` resolved to, and the skills available then. */
export const Pin = v.object({ model: Choice, fallback_models: v.array(Choice), skills: v.array(v.string()) })
export type Pin = v.InferOutput<typeof Pin>

/** `available` are the skills there are now; a manifest that names none has them all. */
export async function pinOf(
  document: ManifestDocument,
  name: NameModel,
  choose: ChooseModel,
  available: readonly string[],
): Promise<Pin> {
  const { pinned_model: pinned, model } = document
  const chosen = pinned === undefined || pinned === '' ? model : await choose(pinned, model.provider)
  return {
    model: name(chosen),
    fallback_models: document.fallback_models.map(name),
    skills: document.skills_disabled ? [] : document.skills.length > 0 ? [...document.skills] : [...available],
  }
}

/** The manifest as the agent runs with it. */
export function withPin(document: ManifestDocument, pin: Pin): ManifestDocument {
  return {
    ...document,
    model: { ...document.model, ...pin.model },
    fallback_models: document.fallback_models.map((choice, index) => ({ ...choice, ...pin.fallback_models[index] })),
    skills: pin.skills,
    // An empty list would mean all of them.
    skills_disabled: pin.skills.length === 0,
  }
}

/** Throws `conflict` for a change of what is pinned: accepted silently, it would seem to have an effect. */
export function checkPinned(name: string, before: ManifestDocument, after: ManifestDocument): void {
  const held = (document: ManifestDocument) =>
    [
      ['the model', document.model.provider, document.model.model, document.pinned_model],
      ['the fallback models', document.fallback_models.map(({ provider, model }) => [provider, model])],
      ['the skills', document.skills, document.skills_disabled],
    ] as const
  const now = held(after)
  const moved = held(before).findIndex((entry, index) => JSON.stringify(entry) !== JSON.stringify(now[index]))
  const what = now[moved]?.[0]
  if (what !== undefined)
    throw new Refusal('conflict', `agent "${name}" is in mode Stable, which pins ${what}; set mode Normal first`, {
      details: { mode: 'Stable' },
    })
}
