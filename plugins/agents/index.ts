import * as v from 'valibot'
import { DatabaseSnapshots } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { Catalog } from '../catalog/contract.ts'
import { DeviceWorkListed } from '../pairing/contract.ts'
import { Inference } from '../providers/contract.ts'
import { CollectProbes } from '../security/contract.ts'
import type { Assignable } from './assignable.ts'
import { bulkRoutes } from './bulk-routes.ts'
import { AgentsConfig, SigningConfig } from './config.ts'
import {
  AgentChanged,
  AgentChanging,
  AgentKilled,
  AgentKilling,
  Agents,
  AgentSpawned,
  AgentSpawning,
  AgentVariables,
  AssignablesListed,
  Family,
  TemplateAsked,
} from './contract.ts'
import { FamilyService } from './family.ts'
import { grantRoutes } from './grant-routes.ts'
import { migrations } from './migrations.ts'
import { modeRoutes } from './mode-routes.ts'
import { profileRoutes } from './profile-routes.ts'
import { AgentRegistry } from './registry.ts'
import { agentRoutes } from './routes.ts'
import { AgentService } from './service.ts'
import type { ShippedProofs } from './shipped.ts'
import { Signatures } from './signing.ts'
import { AgentStore } from './store.ts'
import { toolProfileRoutes } from './tool-profile-routes.ts'
import { agentTools } from './tools.ts'
import { createVariables } from './variables.ts'

/** Set when the first agent was made: deleting it is a decision that later boots respect. */
const FIRST_BOOT = 'first-boot'

const loadNames = () => import('./model-names.ts')

export default definePlugin({
  name: 'agents',
  version: '1.0.0',
  config: AgentsConfig,
  sections: { manifest_signing: v.optional(SigningConfig, {}) },
  hooks: [
    AgentSpawning,
    AgentSpawned,
    AgentKilled,
    AgentKilling,
    AgentChanging,
    AgentChanged,
    AssignablesListed,
    TemplateAsked,
  ],
  requires: { audit: Audit, snapshots: DatabaseSnapshots },
  optional: { inference: Inference, catalog: Catalog },
  provides: { agents: Agents, family: Family, variables: AgentVariables },
  migrations,
  offline: { ids: async ({ db, log }) => (db ? (await new AgentStore(db, log).all()).map(({ id }) => id) : []) },
  pages: [
    {
      path: 'agents',
      title: 'Agents',
      group: 'Agents',
      file: 'pages/agents.html',
      assets: [
        'agents.js',
        'agents.css',
        'combobox.js',
        'form-fields.js',
        'manifest-editor.js',
        'offered.js',
        'tool-list.js',
      ],
    },
  ],
  async setup({ config, db, hooks, log, optional, routes, services, storage, tools, vault }) {
    const store = new AgentStore(db, log)
    const { policy } = config.manifest_signing
    // Loaded where it is needed only.
    let proofs: ShippedProofs | undefined
    const shipped = async (): Promise<ShippedProofs> =>
      (proofs ??= new (await import('./shipped.ts')).ShippedProofs({ ...services, vault }))
    const rows =
      policy === 'require'
        ? await (await import('./row-check.ts')).checkRows(config.manifest_signing, await shipped())
        : undefined
    const registry = new AgentRegistry(store, log, rows)
    const [inference, catalog] = [() => optional('inference'), () => optional('catalog')]
    const assignable: Assignable = async (kind) => (await hooks.apply(AssignablesListed, { kind, names: [] })).names
    const agents = new AgentService({
      store,
      registry,
      audit: services.audit,
      hooks,
      maxManifestBytes: config.max_manifest_bytes,
      signatures: new Signatures(config.manifest_signing, services.audit),
      names: async () => (await loadNames()).modelNames(inference(), catalog()),
      choose: async (model, own) => (await inference()?.choose(model, own)) ?? { provider: own, model },
      modelWarnings: async (manifest) => (await loadNames()).modelWarnings(inference(), manifest),
      admit: async (url) => inference()?.admit(url),
      sealShipped: async (toml) => (await shipped()).seal(toml),
      skills: () => assignable('skills'),
    })
    await agents.recover()
    if (!(await storage.hasItem(FIRST_BOOT))) {
      await (await import('./starter.ts')).welcome(agents)
      await storage.setItem(FIRST_BOOT, new Date().toISOString())
    }
    routes.add(
      ...agentRoutes(agents, assignable, config.max_manifest_bytes),
      ...bulkRoutes(agents, config.max_bulk),
      ...modeRoutes(agents),
      ...profileRoutes(agents, assignable),
      ...toolProfileRoutes(),
      ...grantRoutes({ agents, assignable, tools: () => tools.list() }),
    )
    const family = new FamilyService(agents, services.audit, config, store)
    await family.recover()
    hooks.on(CollectProbes, (probes) => [
      ...probes,
      { system: 'capability_inheritance_validation', run: async () => (await import('./probe.ts')).probe(agents) },
      {
        system: 'manifest_signing',
        run: async () => (await import('./signing-probe.ts')).probe(config.manifest_signing),
      },
    ])
    hooks.on(DeviceWorkListed, async (asked) => {
      const { addAgents } = await import('./of-device.ts')
      return addAgents({ ...services, agents, store, registry, hooks }, asked)
    })
    hooks.on(AgentChanged, ({ agent }) => family.recheck(agent))
    tools.add(...agentTools(agents))
    return { agents, family, variables: createVariables() }
  },
})
