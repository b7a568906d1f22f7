import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { BackupParams, List, Made, NewBackup, RestoreBody, Restored } from './schema.ts'
import type { Backups } from './service.ts'

export function backupRoutes(backups: () => Promise<Backups>): readonly AnyRoute[] {
  return [createRoute(backups), listRoute(backups), removeRoute(backups), restoreRoute(backups)]
}

function createRoute(backups: () => Promise<Backups>): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/backup',
    summary: 'Make a backup of everything',
    description:
      'A consistent copy of the database, workspaces, uploads and the configuration without its secrets, while ' +
      'the daemon goes on. Secrets stay sealed with the key of the vault, ' +
      'which is not in the archive unless a passphrase is given to seal it with.',
    auth: 'bearer',
    effect: 'lasting',
    idempotent: false,
    cost: 50,
    body: NewBackup,
    returns: Made,
    errors: ['conflict'],
    example: {
      body: {},
      returns: {
        filename: 'svc_backup_20260131T120000000Z.zip',
        size_bytes: 48_210,
        path: '/home/you/.svc/backups/svc_backup_20260131T120000000Z.zip',
        components: ['data', 'config', 'audit_anchor', 'workspaces'],
        created_at: '2026-01-31T12:00:00.000Z',
        skipped: [],
      },
    },
    async handle({ body, signal }) {
      const { filename, path, sizeBytes, manifest } = await (await backups()).create(body?.passphrase, signal)
      return {
        filename,
        path,
        size_bytes: sizeBytes,
        components: [...manifest.components],
        created_at: manifest.created_at,
        skipped: [...manifest.skipped],
      }
    },
  })
}

function listRoute(backups: () => Promise<Backups>): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/backups',
    summary: 'The backups, the newest first',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: List,
    async handle() {
      const found = await (await backups()).list()
      return {
        backups: found.map(({ filename, path, sizeBytes, modifiedAt, head }) => ({
          filename,
          path,
          size_bytes: sizeBytes,
          modified_at: modifiedAt,
          components: head ? [...head.components] : null,
          svc_version: head?.svc_version ?? null,
          created_at: head?.created_at ?? null,
        })),
        total: found.length,
      }
    },
  })
}

function removeRoute(backups: () => Promise<Backups>): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/backups/:filename',
    summary: 'Delete a backup',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: BackupParams,
    returns: v.object({ status: v.literal('deleted'), filename: v.string() }),
    errors: ['backup_not_found', 'conflict'],
    async handle({ params }) {
      await (await backups()).remove(params.filename)
      return { status: 'deleted' as const, filename: params.filename }
    },
  })
}

function restoreRoute(backups: () => Promise<Backups>): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/restore',
    summary: 'Restore a backup over all present data',
    description:
      'The archive is checked as a whole first: its origin, every file, and that there is nothing else. Then the ' +
      'present data is kept as another backup, and the daemon restarts with the restored data. ' +
      'Whatever is written between this answer and the restart is in that backup, not in the restored ' +
      'data. The configuration stays as it is.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 100,
    body: RestoreBody,
    returns: Restored,
    errors: ['backup_not_found', 'conflict'],
    example: { body: { filename: 'svc_backup_20260131T120000000Z.zip' } },
    async handle({ body, signal }) {
      const { manifest, files, previous } = await (await backups()).restore(body.filename, body.passphrase, signal)
      const { format, created_at, svc_version, components } = manifest
      return {
        status: 'restarting' as const,
        restored_files: files,
        errors: [],
        manifest: { format, created_at, svc_version, components: [...components], files: manifest.files.length },
        previous,
        message: `${body.filename} is verified and unpacked; the daemon restarts on it`,
      }
    },
  })
}
