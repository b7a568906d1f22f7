import { isUtf8 } from 'node:buffer'
import { readJsonBody } from 'svc/internal'
import { defineRoute, parse, rawBody, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { WorkspaceFiles } from './contract.ts'
import { identityFiles } from './identity-files.ts'
import { FileContent, FileList, FileParams, ListQuery, NewContent, ReadQuery, Removed, Written } from './schema.ts'

const errors = ['agent_not_found', 'file_not_found', 'forbidden'] as const

export function fileRoutes(
  workspaces: WorkspaceFiles,
  agents: Agents,
  audit: Audit,
  maxFileBytes: number,
): readonly AnyRoute[] {
  return [
    listRoute(workspaces),
    readRoute(workspaces),
    writeRoute(workspaces, agents, audit, maxFileBytes),
    removeRoute(workspaces, agents, audit),
  ]
}

function listRoute(workspaces: WorkspaceFiles): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/files',
    summary: 'List the files in the workspace of an agent',
    description: 'By name, the identity files first, whether or not they exist. Links are left out.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    query: ListQuery,
    returns: FileList,
    errors: ['agent_not_found'],
    async handle({ params, query: { limit } }) {
      // One more than requested shows whether there are more.
      const found = await workspaces.list(params.id, undefined, limit + 1)
      const truncated = found.length > limit
      const byName = new Map(found.slice(0, limit).map((file) => [file.name, file]))
      const names = [...identityFiles.keys(), ...[...byName.keys()].filter((name) => !identityFiles.has(name))]
      return {
        files: names.map((name) => {
          const file = byName.get(name)
          return {
            name,
            exists: file !== undefined,
            size_bytes: file?.sizeBytes ?? 0,
            modified_at: file?.modifiedAt ?? null,
            ...(file?.problem !== undefined && { problem: file.problem }),
          }
        }),
        truncated,
      }
    },
  })
}

function readRoute(workspaces: WorkspaceFiles): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/files/**:filename',
    summary: 'Read a file of a workspace',
    description:
      'As JSON, what is no text in base64. The bytes themselves with `?raw=true` or `Accept: ' +
      'application/octet-stream`.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: FileParams,
    query: ReadQuery,
    returns: FileContent,
    produces: 'application/octet-stream',
    errors: [...errors, 'payload_too_large'],
    async handle({ params: { id, filename }, query, header }) {
      const content = await workspaces.read(id, filename)
      if (query.raw === 'true' || header('accept')?.trim().toLowerCase() === 'application/octet-stream') {
        const { asFile } = await import('./media-type.ts')
        return asFile(content, 'application/octet-stream', filename.slice(filename.lastIndexOf('/') + 1))
      }
      const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
      const encoding = isUtf8(bytes) ? ('utf-8' as const) : ('base64' as const)
      return { name: filename, content: bytes.toString(encoding), size_bytes: bytes.length, encoding }
    },
  })
}

function writeRoute(workspaces: WorkspaceFiles, agents: Agents, audit: Audit, maxFileBytes: number): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/agents/:id/files/**:filename',
    summary: 'Create or overwrite a file of a workspace',
    description:
      'JSON with `content`, in base64 when `encoding` says so; or the bytes themselves under any other ' +
      'Content-Type. Missing folders are created.',
    // Base64 and escapes make the body larger than the file.
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: FileParams,
    body: rawBody(maxFileBytes * 2 + 65_536, NewContent),
    returns: Written,
    errors: [...errors, 'payload_too_large'],
    example: { body: { content: '# Notes\n' } },
    async handle({ params: { id, filename }, body, header }) {
      const agent = await agents.require(id)
      const content = contentOf(body, header('content-type'))
      const size = content.byteLength
      // Everything that can be refused is refused before the audit entry.
      await workspaces.check(agent.id, filename)
      workspaces.checkSize(filename, size)
      await audit.write({ event: 'file_access', agentId: agent.id, details: `write "${filename}" (${size} bytes)` })
      const { created } = await workspaces.write(agent.id, filename, content)
      return { status: 'ok' as const, name: filename, size_bytes: size, created }
    },
  })
}

function removeRoute(workspaces: WorkspaceFiles, agents: Agents, audit: Audit): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/agents/:id/files/**:filename',
    summary: 'Delete a file of a workspace',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: FileParams,
    returns: Removed,
    errors,
    async handle({ params: { id, filename } }) {
      const agent = await agents.require(id)
      await workspaces.check(agent.id, filename)
      await audit.write({ event: 'file_access', agentId: agent.id, details: `delete "${filename}"` })
      if (!(await workspaces.remove(agent.id, filename))) throw new Refusal('file_not_found', `No file "${filename}"`)
      return { status: 'ok' as const, name: filename }
    },
  })
}

function contentOf(body: Uint8Array, type: string | undefined): Uint8Array {
  if (!/^application\/json\s*(;|$)/i.test(type ?? '')) return body
  const { content, encoding } = parse(NewContent, readJsonBody(body))
  if (encoding === 'base64') {
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(content) || content.length % 4 !== 0)
      throw new Refusal('invalid_request', 'content: is not base64')
    return Buffer.from(content, 'base64')
  }
  if (!content.isWellFormed()) throw new Refusal('invalid_request', 'content: is not well-formed Unicode')
  return Buffer.from(content)
}
