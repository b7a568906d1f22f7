import { findNearest, lineOfKey, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { exceeds } from './inherit.ts'
import { editManifest, parseManifest } from './manifest.ts'
import { mentions } from './mentions.ts'
import type { LoadedAgent } from './registry.ts'

interface Issue {
  readonly path: string
  readonly message: string
}
/**
 * What went wrong with a manifest, with the line of each value: `manifest_toml:7: model.temperature: …`. `replaced`:
 * keys whose value is not that of the text. `file`: what the text is called.
 */
export function withLine(
  toml: string,
  error: unknown,
  { replaced = [], file = 'manifest_toml' }: { readonly replaced?: readonly string[]; readonly file?: string } = {},
): unknown {
  if (!(error instanceof Refusal) || error.code !== 'invalid_request') return error
  const { issues = [] } = error.details as { readonly issues?: readonly Issue[] }
  const find = (path: string): number | undefined => (replaced.includes(path) ? undefined : lineOfKey(toml, path))
  const [first, ...others] = issues
  const key = first?.path
  const line = key === undefined ? undefined : find(key)
  if (line === undefined || error.message.startsWith('manifest_toml')) return error
  const further = others.map(({ path, message }) => {
    const at = find(path)
    return `${file}${at === undefined ? '' : `:${at}`}: ${path}: ${message}`
  })
  return new Refusal('invalid_request', [`${file}:${line}: ${error.message}`, ...further].join('\n'), {
    details: { ...error.details, line, key },
    cause: error,
  })
}

/** The manifest with these skills. `isWider`: it has a right that the one before has not. */
export function withSkills(
  before: string,
  skills: readonly string[],
): { readonly toml: string; readonly isWider: boolean } {
  const toml = editManifest(before, {
    skills: skills.includes('*') ? [] : skills,
    skills_disabled: skills.length === 0,
  })
  return { toml, isWider: exceeds(parseManifest(before).document, parseManifest(toml).document) !== undefined }
}

/** What whoever made or changed an agent may not know of its manifest. `available`: the names of all skills. */
export async function warningsOf(
  { name, manifest, manifestToml, warnings }: LoadedAgent,
  available: () => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const wanted = manifest.skills.filter((skill) => !skill.includes('*'))
  const known = wanted.length === 0 ? [] : await available()
  return [
    ...(mentions(manifestToml)('name') ? [] : [`the manifest has no "name", so the agent is called "${name}"`]),
    ...warnings,
    ...wanted
      .filter((skill) => !known.includes(skill))
      .map(
        (skill) => `skills: there is no "${skill}"${suggest(findNearest(skill, known))}; the agent works without it`,
      ),
  ]
}
