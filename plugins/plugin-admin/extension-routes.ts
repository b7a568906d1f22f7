import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { PluginCatalog } from './catalog.ts'
import type { Installer } from './install/service.ts'
import {
  ExtensionDetail,
  ExtensionInstalled,
  ExtensionRemoved,
  ExtensionRequest,
  Extensions,
  installErrors,
  PluginParams,
  UninstallRequest,
} from './schema.ts'

const auth = 'bearer' as const

interface ExtensionDeps {
  readonly catalog: () => Promise<PluginCatalog>
  readonly installer: () => Promise<Installer>
}

/** The plugins that do not ship with svc, in the shape of a catalogue of extensions. */
export function extensionRoutes(deps: ExtensionDeps): readonly AnyRoute[] {
  return [listRoute(deps), readRoute(deps), installRoute(deps), uninstallRoute(deps)]
}

function listRoute({ catalog }: ExtensionDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/extensions',
    summary: 'List the plugins that do not ship with svc',
    auth,
    effect: 'read',
    cost: 5,
    returns: Extensions,
    handle: async () => (await catalog()).extensions(),
  })
}

function readRoute({ catalog }: ExtensionDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/extensions/:name',
    summary: 'Read one plugin that does not ship with svc',
    auth,
    effect: 'read',
    cost: 5,
    params: PluginParams,
    returns: ExtensionDetail,
    errors: ['extension_not_found'],
    handle: async ({ params }) => (await catalog()).extension(params.name),
  })
}

function installRoute({ installer }: ExtensionDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/extensions/install',
    summary: 'Install a plugin by name',
    description: 'As `POST /api/plugins/install`, with the fields of that route.',
    auth,
    effect: 'lasting',
    cost: 100,
    body: ExtensionRequest,
    returns: ExtensionInstalled,
    errors: installErrors,
    async handle({ body, principal }) {
      const service = await installer()
      await service.authorize(principal, body.proof)
      const { name } = await service.install({ ...body, dry_run: false })
      return { status: 'installed' as const, name, connected: true }
    },
  })
}

function uninstallRoute({ installer }: ExtensionDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/extensions/uninstall',
    summary: 'Remove a plugin by name',
    description: 'As `POST /api/plugins/uninstall`.',
    auth,
    effect: 'lasting',
    cost: 50,
    body: UninstallRequest,
    returns: ExtensionRemoved,
    errors: ['forbidden', 'plugin_not_found', 'conflict'],
    async handle({ body, principal }) {
      const service = await installer()
      await service.authorize(principal, body.proof, 'plugin remove')
      const { toOptions, toStoredData } = await import('./install/stored-data.ts')
      const data = toStoredData(await service.uninstall(body.name, toOptions(body)))
      return { status: body.dry_run ? ('checked' as const) : ('uninstalled' as const), name: body.name, data }
    },
  })
}
