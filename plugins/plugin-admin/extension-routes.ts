import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { PluginCatalog } from './catalog.ts'
import type { Integrations } from '../integrations/contract.ts'
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
  /** `undefined` while their plugin is not loaded. */
  readonly integrations: () => Integrations | undefined
}

/** The plugins that do not ship with svc, and the catalogue of integrations, as one catalogue of extensions. */
export function extensionRoutes(deps: ExtensionDeps): readonly AnyRoute[] {
  return [listRoute(deps), readRoute(deps), installRoute(deps), uninstallRoute(deps)]
}

function listRoute({ catalog }: ExtensionDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/extensions',
    summary: 'List the plugins that do not ship with svc, and the integrations',
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
    summary: 'Read a plugin that does not ship with svc, or an integration',
    auth,
    effect: 'read',
    cost: 5,
    params: PluginParams,
    returns: ExtensionDetail,
    errors: ['extension_not_found'],
    handle: async ({ params }) => (await catalog()).extension(params.name),
  })
}

function installRoute({ installer, integrations }: ExtensionDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/extensions/install',
    summary: 'Install a plugin, or add an integration, by name',
    description:
      'A plugin as `POST /api/plugins/install`, with the fields of that route; an integration as ' +
      '`POST /api/integrations/add`.',
    auth,
    effect: 'lasting',
    cost: 100,
    body: ExtensionRequest,
    returns: ExtensionInstalled,
    errors: [...installErrors, 'extension_not_found'],
    async handle({ body, principal }) {
      const catalogue = integrations()
      if (catalogue && (await isIntegration(body, catalogue))) {
        const { id, state } = await addIntegration(body, catalogue)
        return { status: 'installed' as const, name: id, connected: state === 'ready' }
      }
      if (body.kind === 'integration')
        throw new Refusal('service_unavailable', 'The plugin "integrations", which has the catalogue, is not loaded')
      const service = await installer()
      await service.authorize(principal, body.proof)
      const { name } = await service.install({ ...body, dry_run: false })
      return { status: 'installed' as const, name, connected: true }
    },
  })
}

/** Only a plugin comes from somewhere. */
async function isIntegration(body: ExtensionRequest, catalogue: Integrations): Promise<boolean> {
  const { kind, source, path, url, version, registry, update } = body
  if (kind !== undefined) return kind === 'integration'
  if ([source, path, url, version, registry].some((field) => field !== undefined) || update) return false
  return (await catalogue.entry(body.name)) !== undefined
}
async function addIntegration({ name, token, credentials }: ExtensionRequest, catalogue: Integrations) {
  const entry = await catalogue.entry(name)
  // One that was added under a name of its own is none of the catalogue.
  if (entry?.installed) throw new Refusal('conflict', `The integration "${name}" is added already`)
  return await catalogue.add({ template: name, token, credentials })
}

function uninstallRoute({ installer, integrations, catalog }: ExtensionDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/extensions/uninstall',
    summary: 'Remove a plugin or an integration by name',
    description: 'As `POST /api/plugins/uninstall`, or as `DELETE /api/integrations/{id}`.',
    auth,
    effect: 'lasting',
    cost: 50,
    body: UninstallRequest,
    returns: ExtensionRemoved,
    errors: ['forbidden', 'plugin_not_found', 'extension_not_found', 'conflict'],
    async handle({ body, principal }) {
      const status = body.dry_run ? ('checked' as const) : ('uninstalled' as const)
      const catalogue = integrations()
      const entry = (await catalog()).isForeign(body.name) ? undefined : await catalogue?.entry(body.name)
      if (catalogue && entry) {
        if (!entry.installed) throw new Refusal('extension_not_found', `The integration "${body.name}" was not added`)
        if (!body.dry_run) await catalogue.remove(body.name)
        return { status, name: body.name, data: null }
      }
      const service = await installer()
      await service.authorize(principal, body.proof, 'plugin remove')
      const { toOptions, toStoredData } = await import('./install/stored-data.ts')
      const data = toStoredData(await service.uninstall(body.name, toOptions(body)))
      return { status, name: body.name, data }
    },
  })
}
