import { defineRoute, reply } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Installer } from './install/service.ts'
import {
  DependencyAnswer,
  DependencyRequest,
  InstallAnswer,
  installErrors,
  InstallRequest,
  PluginParams,
  Registries,
  Removed,
  ScaffoldRequest,
  Scaffolded,
  UninstallRequest,
} from './schema.ts'

const auth = 'bearer' as const
const effect = 'lasting' as const
const NEEDS_PROOF = 'Needs the API key; without one, a `proof` that the caller may write to the folder of plugins.'
const INSTALL_DESCRIPTION =
  'From the npm registry (`name`), an address (`url`), or a folder or archive on the machine of the daemon (`path`). ' +
  'Hash and signature are checked before a file is written, nothing of it is run but the plugin itself, and ' +
  'dependencies lie in its own folder. What it asks for and was not accepted is refused with 409, with the list in ' +
  '`details`. `update` replaces an installed plugin; when the new code cannot be loaded, the old one goes on. ' +
  NEEDS_PROOF
const UNINSTALL_DESCRIPTION =
  'Running calls end first. Its tables, stored values and secrets stay, and are found again when it is installed again; ' +
  '`delete_data` deletes them, and `dry_run` says which they are.'
const created = (body: object) => reply(JSON.stringify(body), { 'content-type': 'application/json' }, 201)

/** `installer` loads the code that installs with the first request. */
export function installRoutes(installer: () => Promise<Installer>): readonly AnyRoute[] {
  return [
    registriesRoute(installer),
    installRoute(installer),
    uninstallRoute(installer),
    scaffoldRoute(installer),
    dependenciesRoute(installer),
  ]
}

function registriesRoute(installer: () => Promise<Installer>): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/plugins/registries',
    summary: 'The registries plugins are installed from, with the plugins they have',
    auth,
    effect: 'read',
    cost: 20,
    returns: Registries,
    handle: async () => ({ registries: [await (await installer()).searchRegistry()] }),
  })
}

function installRoute(installer: () => Promise<Installer>): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/plugins/install',
    summary: 'Install or update a plugin',
    description: INSTALL_DESCRIPTION,
    auth,
    effect,
    cost: 100,
    body: InstallRequest,
    returns: InstallAnswer,
    answers: {
      200: { description: 'With `dry_run`: what would be installed', json: InstallAnswer },
      201: { description: 'It is installed and loaded', json: InstallAnswer },
    },
    errors: installErrors,
    async handle({ body, principal }) {
      const service = await installer()
      await service.authorize(principal, body.proof)
      const answer = await service.install(body)
      return answer.installed ? created(answer) : answer
    },
  })
}

function uninstallRoute(installer: () => Promise<Installer>): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/plugins/uninstall',
    summary: 'Unload a plugin of the home and remove its files',
    description: `${UNINSTALL_DESCRIPTION} ${NEEDS_PROOF}`,
    auth,
    effect,
    cost: 50,
    body: UninstallRequest,
    returns: Removed,
    errors: ['forbidden', 'plugin_not_found', 'conflict'],
    async handle({ body, principal }) {
      const service = await installer()
      await service.authorize(principal, body.proof, 'plugin remove')
      const { toOptions, toStoredData } = await import('./install/stored-data.ts')
      const data = toStoredData(await service.uninstall(body.name, toOptions(body)))
      return { removed: !body.dry_run, name: body.name, data }
    },
  })
}

function scaffoldRoute(installer: () => Promise<Installer>): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/plugins/scaffold',
    summary: 'Make a new plugin with types, a test and a README',
    description: NEEDS_PROOF,
    auth,
    effect,
    cost: 50,
    body: ScaffoldRequest,
    returns: Scaffolded,
    answers: { 201: { description: 'It lies in the folder of plugins and is loaded', json: Scaffolded } },
    errors: ['invalid_request', 'forbidden', 'conflict'],
    async handle({ body: { proof, ...request }, principal }) {
      const service = await installer()
      await service.authorize(principal, proof, 'plugin new')
      return created(await service.scaffold(request))
    },
  })
}

function dependenciesRoute(installer: () => Promise<Installer>): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/plugins/:name/install-deps',
    summary: 'Install the dependencies of a plugin again',
    description: `When the plugin cannot be loaded with them, those before are put back. ${NEEDS_PROOF}`,
    auth,
    effect,
    cost: 100,
    params: PluginParams,
    body: DependencyRequest,
    returns: DependencyAnswer,
    errors: [...installErrors, 'plugin_not_found'],
    async handle({ params, body, principal }) {
      const service = await installer()
      await service.authorize(principal, body.proof)
      const dependencies = [...(await service.installDependencies(params.name))]
      return { success: true, output: dependencies.map((one) => `${one}\n`).join(''), dependencies }
    },
  })
}
