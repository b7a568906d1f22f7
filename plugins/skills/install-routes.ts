import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import {
  Created,
  CreateSkill,
  InstallRequest,
  InstallResult,
  SkillParams,
  Tested,
  Uninstalled,
  UninstallRequest,
} from './schema.ts'
import type { SkillAdmin } from './admin.ts'

type Admin = () => Promise<SkillAdmin>
const auth = 'bearer' as const

export function installRoutes(admin: Admin): readonly AnyRoute[] {
  return [installRoute(admin), uninstallRoute(admin), removeRoute(admin), createRoute(admin), testRoute(admin)]
}

function installRoute(admin: Admin): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/skills/install',
    summary: 'Install a skill from a folder, an archive or an https address',
    description:
      'Its files are scanned before anything is written. 409 names the permissions that are not accepted yet; send ' +
      'them in `accept`. `dry_run` says what it is and asks for. `verify: false` skips the check of `sha256` only.',
    auth,
    effect: 'lasting',
    cost: 50,
    status: 201,
    body: InstallRequest,
    returns: InstallResult,
    errors: ['not_found', 'forbidden', 'conflict', 'payload_too_large', 'service_unavailable'],
    example: { body: { source: '/srv/skills/release-notes.tgz' } },
    handle: async ({ body }) => (await admin()).install(body),
  })
}

function uninstallRoute(admin: Admin): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/skills/uninstall',
    summary: 'Uninstall a skill',
    auth,
    effect: 'lasting',
    cost: 10,
    body: UninstallRequest,
    returns: Uninstalled,
    errors: ['not_found', 'forbidden', 'conflict'],
    example: { body: { name: 'release-notes' } },
    handle: async ({ body: { name } }) => (await admin()).remove(name),
  })
}

function removeRoute(admin: Admin): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/skills/:name',
    summary: 'Uninstall a skill (alternate listing)',
    auth,
    effect: 'lasting',
    cost: 10,
    params: SkillParams,
    returns: Uninstalled,
    errors: ['not_found', 'forbidden', 'conflict'],
    handle: async ({ params: { name } }) => (await admin()).remove(name),
  })
}

function createRoute(admin: Admin): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/skills/create',
    summary: 'Make a skill with a test',
    auth,
    effect: 'lasting',
    cost: 10,
    status: 201,
    body: CreateSkill,
    returns: Created,
    errors: ['conflict'],
    example: { body: { name: 'release-notes', runtime: 'prompt_only', description: 'Writes release notes.' } },
    handle: async ({ body }) => (await admin()).create(body),
  })
}

function testRoute(admin: Admin): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/skills/:name/test',
    summary: 'Run the tests of a skill',
    description: 'Those in its `skill.test.json`, with no agent: its tools have no workspace and no network.',
    auth,
    effect: 'lasting',
    idempotent: false,
    cost: 50,
    params: SkillParams,
    returns: Tested,
    errors: ['not_found', 'conflict'],
    handle: async ({ params: { name }, signal }) => (await admin()).test(name, signal),
  })
}
