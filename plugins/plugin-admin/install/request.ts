import { Refusal } from 'svc/sdk'
import type { InstallRequest } from '../schema.ts'

/** Where a plugin comes from, as it is fetched. */
export type Source =
  | { readonly kind: 'registry'; readonly name: string; readonly range: string }
  | { readonly kind: 'url' | 'git'; readonly url: string }
  | { readonly kind: 'archive' | 'folder'; readonly path: string }
  /** From another daemon, which had it `from` there. */
  | { readonly kind: 'archive'; readonly bytes: Uint8Array; readonly from: string }

/** Throws `invalid_request` for a request that names no source, or one that cannot be had. */
export function toSource(request: InstallRequest, isFolder: (path: string) => boolean): Source {
  const { source, name, path, url } = request
  const kind = source ?? (path === undefined ? (url === undefined ? 'registry' : 'url') : 'local')
  if (kind === 'registry') {
    if (request.registry !== undefined && request.registry !== 'npm')
      throw new Refusal('not_found', `There is no registry "${request.registry}"; there is "npm"`)
    return { kind, ...splitPackage(required(name, 'name', kind), request.version) }
  }
  if (kind === 'url') return { kind, url: webAddress(required(url, 'url', kind)) }
  if (kind === 'git') return { kind, url: repositoryArchive(required(url, 'url', kind), request.branch) }
  const named = required(path, 'path', kind)
  if (!named.startsWith('/')) throw new Refusal('invalid_request', `path: "${named}" must be absolute`)
  if (isFolder(named)) return { kind: 'folder', path: named }
  if (/\.[cm]?[jt]s$/.test(named))
    throw new Refusal('invalid_request', `path: "${named}" is a single file: add a folder that has it as index.ts`)
  return { kind: 'archive', path: named }
}

/** For records and answers. */
export function describeSource(source: Source): string {
  if ('bytes' in source) return source.from
  if ('path' in source) return `${source.kind}:${source.path}`
  if (source.kind === 'registry') return `registry:${source.name}@${source.range}`
  const { origin, pathname } = new URL(source.url)
  return `${source.kind}:${origin}${pathname}`
}

/** What `describeSource` has made. Throws `forbidden` for what lies on the machine of another daemon. */
export function parseSource(text: string): Source {
  const [kind, rest] = [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)]
  if (kind === 'registry') return { kind, ...splitPackage(rest, undefined) }
  if (kind === 'url' || kind === 'git') return { kind, url: webAddress(rest) }
  throw new Refusal(
    'forbidden',
    `"${text}" lies on the machine of another daemon, and plugins.plugin-admin.sources permits no archives here`,
  )
}

function required(value: string | undefined, key: string, kind: string): string {
  if (value !== undefined) return value
  throw new Refusal('invalid_request', `${key}: is missing; the source "${kind}" needs it`)
}
function splitPackage(text: string, version: string | undefined): { readonly name: string; readonly range: string } {
  const at = text.indexOf('@', 1)
  if (at < 0) return { name: text, range: version ?? 'latest' }
  return { name: text.slice(0, at), range: version ?? text.slice(at + 1) }
}
function webAddress(text: string): string {
  const url = URL.parse(text)
  if (url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') return url.href
  throw new Refusal('invalid_request', 'url: must be an http or https address without a user name')
}
/** Programs are not needed for this, and no code of the repository runs. */
function repositoryArchive(text: string, branch = 'HEAD'): string {
  const found = /^https:\/\/github\.com\/([\w.-]+)\/([\w.-]+?)(?:\.git)?\/?$/.exec(text)
  if (found && /^[\w./-]+$/.test(branch) && !branch.includes('..'))
    return `https://codeload.github.com/${found[1]}/${found[2]}/tar.gz/${branch}`
  throw new Refusal(
    'invalid_request',
    `url: "${text}" is no repository on GitHub; name the address of its archive (.tgz) with the source "url"`,
  )
}
