import type { HomeDraft } from '../model.ts'
import { readFields } from '../source/parse.ts'
import type { SourceFolder } from '../source/source-folder.ts'
import { fieldsOf, textOf } from '../source/values.ts'
import type { Fields } from '../source/values.ts'
import { providerName } from './names.ts'

/**
 * Keys of providers: `profiles` of `auth-profiles.json` of each agent (`{ type: "api_key", provider, key }`, where
 * `keyRef` names a variable), `models.providers` of the configuration, then variables. Read in November 2026:
 * docs.openclaw.ai/gateway/authentication and concepts/model-providers. Sign-ins are bound to the other system.
 */
export async function readKeys(
  draft: HomeDraft,
  folder: SourceFolder,
  config: Fields,
  variables: ReadonlyMap<string, string>,
): Promise<void> {
  const add = (provider: string | undefined, given: unknown): void => {
    const value = secretOf(given, variables)
    if (value === undefined || provider === undefined) return
    folder.mask.register(value)
    draft.keys.push({ provider: providerName(provider), variable: undefined, value })
  }
  for (const file of [
    'auth-profiles.json',
    ...draft.agents.map(({ key }) => `agents/${key}/agent/auth-profiles.json`),
  ]) {
    const fields = (await folder.has(file)) ? await readFields(folder, file) : undefined
    for (const profile of Object.values(fieldsOf(fields?.['profiles']))) {
      const { type, provider, key, keyRef } = fieldsOf(profile)
      if (type === 'api_key') add(textOf(provider), key ?? keyRef)
      else draft.leave('key', textOf(provider) ?? file, 'sign-ins are bound to the other system: sign in anew')
    }
  }
  for (const [provider, entry] of Object.entries(fieldsOf(fieldsOf(config['models'])['providers'])))
    add(provider, fieldsOf(entry)['apiKey'])
  for (const [variable, value] of variables) if (value !== '') draft.keys.push({ provider: undefined, variable, value })
}

/** A text, a variable in braces, or a reference `{ source: "env", id }`. */
function secretOf(given: unknown, variables: ReadonlyMap<string, string>): string | undefined {
  const { source, id } = fieldsOf(given)
  if (source === 'env') return variables.get(textOf(id) ?? '') || undefined
  const text = textOf(given)
  const [, braced] = /^\$\{([A-Za-z_]\w*)\}$/.exec(text ?? '') ?? []
  return braced === undefined ? text : variables.get(braced) || undefined
}
