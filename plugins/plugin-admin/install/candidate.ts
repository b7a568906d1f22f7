import { join } from 'node:path'
import { newPermissions } from 'svc/internal'
import type { PluginStatus } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Inspection } from '../inspect/inspection.ts'
import { describeSource } from './request.ts'
import type * as v from 'valibot'
import type { InstallAnswer, InstallRequest } from '../schema.ts'
import type { Source } from './request.ts'

/** A plugin in its staging folder, and what is known of it. */
export interface Inspected {
  readonly source: Source
  readonly inspection: Inspection
  readonly hash: string
  readonly signedBy: string | undefined
  readonly dependencies: readonly string[]
  readonly deprecated: string | undefined
}
/** The same, compared with what is installed. */
export interface Candidate extends Inspected {
  readonly isUpdate: boolean
  /** Permissions that were not accepted yet. */
  readonly added: readonly string[]
}

export function toAnswer(
  candidate: Candidate,
  plugins: string,
  installed: boolean,
): v.InferOutput<typeof InstallAnswer> {
  const { inspection, source, hash, signedBy, isUpdate, added, dependencies, deprecated } = candidate
  return {
    installed,
    status: installed ? (isUpdate ? 'updated' : 'installed') : 'checked',
    name: inspection.name,
    version: inspection.version,
    path: join(plugins, inspection.name),
    restart_required: false,
    source: describeSource(source),
    hash,
    signed_by: signedBy ?? null,
    permissions: [...inspection.permissions],
    added_permissions: [...added],
    dependencies: [...dependencies],
    deprecated: deprecated ?? null,
  }
}

/** Throws `conflict`. */
export function refuseUnaccepted({ inspection, added, hash, isUpdate }: Candidate, request: InstallRequest): void {
  const missing = newPermissions(request.accept ?? [], added)
  if (request.accept_permissions || missing.length === 0) return
  const { name, version, permissions } = inspection
  const asks = isUpdate ? 'asks for more than was accepted' : 'asks for permissions'
  throw new Refusal(
    'conflict',
    `Plugin "${name}" ${asks}: ${missing.join(', ')}; send them in accept, or accept_permissions: true`,
    { details: { reason: 'permissions_required', name, version, hash, permissions, added, missing } },
  )
}

/** Throws `conflict`. */
export function refuseNeeded({ name, provides }: PluginStatus, all: readonly PluginStatus[], force: boolean): void {
  const needing = all.filter((one) => one.state === 'loaded' && one.requires.some((id) => provides.includes(id)))
  if (force || needing.length === 0) return
  const names = needing.map((one) => one.name).join(', ')
  throw new Refusal('conflict', `Plugin "${name}" is needed by ${names}: send force to remove it in any case`)
}
