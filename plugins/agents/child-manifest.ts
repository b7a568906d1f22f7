import { exceeds } from './inherit.ts'
import { editManifest, parseManifest } from './manifest.ts'
import type { ManifestEdits } from './manifest.ts'
import type { ManifestDocument } from './manifest-schema.ts'
import { mentions } from './mentions.ts'

/** The manifest of a child, with what it leaves open filled in, and the first right in it that the parent has not. */
export function inherited(
  parent: ManifestDocument,
  manifestToml: string,
): { readonly toml: string; readonly right: string | undefined } {
  const toml = narrow(manifestToml, parent)
  return { toml, right: exceeds(parent, parseManifest(toml).document) }
}

/**
 * Fills in what the text leaves out, so that no omission makes the child wider than its parent. What the text contains
 * stays and is checked afterwards.
 */
function narrow(toml: string, parent: ManifestDocument): string {
  const child = parseManifest(toml).document
  const says = mentions(toml)
  const edits = { ...listEdits(child, parent, says), ...limitEdits(parent, says), ...policyEdits(child, parent) }
  return Object.keys(edits).length === 0 ? toml : editManifest(toml, edits)
}

type Edits = Record<string, ManifestEdits[string]>

function listEdits(child: ManifestDocument, parent: ManifestDocument, says: (path: string) => boolean): Edits {
  const edits: Edits = {}
  if (parent.tool_blocklist.length > 0)
    edits['tool_blocklist'] = [...new Set([...child.tool_blocklist, ...parent.tool_blocklist])]
  if (parent.tool_allowlist.length > 0 && child.tool_allowlist.length === 0)
    edits['tool_allowlist'] = parent.tool_allowlist
  if (!says('skills') && (parent.skills.length > 0 || parent.skills_disabled)) edits['skills_disabled'] = true
  if (!says('mcp_servers') && (parent.mcp_servers.length > 0 || parent.mcp_disabled)) edits['mcp_disabled'] = true
  return edits
}

function limitEdits(parent: ManifestDocument, says: (path: string) => boolean): Edits {
  const edits: Edits = {}
  const limits = {
    ...flat('resources', parent.resources),
    'autonomous.max_iterations': parent.autonomous.max_iterations,
    'model.max_tokens': parent.model.max_tokens,
  }
  for (const [path, limit] of Object.entries(limits)) if (typeof limit === 'number' && !says(path)) edits[path] = limit
  return edits
}

function policyEdits(child: ManifestDocument, parent: ManifestDocument): Edits {
  const edits: Edits = {}
  if (child.exec_policy === undefined && parent.exec_policy)
    Object.assign(edits, flat('exec_policy', parent.exec_policy))
  if (Object.keys(child.tools).length === 0)
    for (const [name, params] of Object.entries(parent.tools))
      if (/^[A-Za-z0-9_-]+$/.test(name) && typeof params === 'object' && params !== null)
        Object.assign(edits, flat(`tools.${name}`, params))
  const approval = parent.metadata['approval']
  if (typeof approval === 'string') edits['metadata.approval'] = approval
  return edits
}

/** The plain values of a table by path. Tables inside it are left out; the check of rights that follows covers them. */
function flat(path: string, table: object): Record<string, ManifestEdits[string]> {
  return Object.fromEntries(
    Object.entries(table).flatMap(([key, value]): (readonly [string, ManifestEdits[string]])[] => {
      // A dot or a prototype's name would lead elsewhere.
      if (!/^[A-Za-z0-9_-]+$/.test(key) || key === '__proto__' || path.includes('__proto__')) return []
      if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
        return [[`${path}.${key}`, value]]
      return Array.isArray(value) && value.every((each) => typeof each === 'string') ? [[`${path}.${key}`, value]] : []
    }),
  )
}
