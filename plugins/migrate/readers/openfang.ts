import { messageOf } from 'svc/internal'
import type { ForeignDatabase } from 'svc/internal'
import { commandLine } from 'svc/sdk'
import { HomeDraft } from '../model.ts'
import type { SourceHome, SourceType } from '../model.ts'
import { readFields, readValue } from '../source/parse.ts'
import type { SourceFolder } from '../source/source-folder.ts'
import { secretVariables, withoutSecrets } from '../source/secrets.ts'
import { fieldsOf, listOf, readVariables, textOf } from '../source/values.ts'
import type { Fields } from '../source/values.ts'
import { readChannels } from './channels.ts'
import { readMemoryFile } from './memories.ts'
import { decodePacked } from './message-pack.ts'
import { providerName } from './names.ts'
import type { ReaderDeps } from './openclaw.ts'
import { nameOf } from './openclaw-jobs.ts'
import { readMemories, readSessions, readValues } from './openfang-database.ts'
import { readSkills } from './skills.ts'

type Product = Exclude<SourceType, 'openclaw'>

/** Which of the two a folder is a home of: their formats are the same but for names. */
export async function productOf(folder: SourceFolder): Promise<Product | undefined> {
  if (await folder.has('data/librefang.db')) return 'librefang'
  if (await folder.has('data/openfang.db')) return 'openfang'
  if (!(await folder.has('config.toml'))) return undefined
  if (/librefang/i.test(folder.path)) return 'librefang'
  return /openfang/i.test(folder.path) || (await folder.hasFolder('agents')) ? 'openfang' : undefined
}

/**
 * A home of OpenFang or LibreFang. The facts are those of their repositories (docs/configuration.md, docs/workflows.md,
 * the schema of the memory database, versions 1 to 17) as they were in November 2026: `config.toml`, a manifest in TOML
 * for each agent, and a SQLite database with manifests and messages in MessagePack.
 */
export async function readOpenFang(deps: ReaderDeps, type: Product): Promise<SourceHome> {
  const { folder, scratch, limits } = deps
  const draft = new HomeDraft(limits)
  const config = (await readFields(folder, 'config.toml')) ?? {}
  const database = await scratch.open(folder, `data/${type}.db`)
  const ids = await readAgents(draft, folder, database)
  const variables = await readSecrets(folder)
  readKeys(draft, config, variables)
  for (const secret of secretVariables(variables)) folder.mask.register(secret)
  readChannels(draft, {
    section: fieldsOf(config['channels']),
    variables: (name) => variables.get(name),
    foundSecret: (secret) => folder.mask.register(secret),
  })
  readSettings(draft, config)
  await readSkills(draft, folder, 'skills')
  if (database) {
    await readSessions(draft, deps, database, ids)
    readMemories(draft, database, ids)
    readValues(draft, database, ids)
    leaveTables(draft, database, type)
  }
  await readAutomation(draft, folder, ids)
  for (const name of ['hands', 'vault.enc', 'integrations.toml', 'extensions'])
    if ((await folder.has(name)) || (await folder.hasFolder(name))) draft.leave('config', name, reasons[name] ?? '')
  for (const key of Object.keys(config))
    if (!['channels', 'default_model', 'config_version', 'provider_api_keys'].includes(key))
      draft.leave('config', key, 'this section is not taken over by itself: config.toml here has most of its keys')
  const version = await versionOf(folder, database, type)
  return { ...draft, type, path: folder.path, version, hide: folder.mask.text }
}
const reasons: Readonly<Record<string, string>> = {
  hands: `activate them here with ${commandLine('hand activate <hand>')}`,
  'vault.enc': 'it is sealed with the key of the other machine: enter the secrets anew',
  'integrations.toml': `add them here with ${commandLine('integration add <type>')}`,
  extensions: 'plugins of the other system are programs, and are not run here',
}

async function versionOf(folder: SourceFolder, database: ForeignDatabase | undefined, type: string): Promise<string> {
  if (database) return `data/${type}.db, version ${database.version}`
  return (await folder.has('config.toml')) ? 'config.toml' : 'no configuration'
}

async function readSecrets(folder: SourceFolder): Promise<ReadonlyMap<string, string>> {
  const texts = await Promise.all(['.env', 'secrets.env'].map((name) => folder.text(name)))
  return new Map(texts.flatMap((text) => [...readVariables(text ?? '')]))
}

/** Variables of the files, of which `provider_api_keys` and `default_model` say whose key is in one. */
function readKeys(draft: HomeDraft, config: Fields, variables: ReadonlyMap<string, string>): void {
  const { provider: vendor, api_key_env: own } = fieldsOf(config['default_model'])
  const named = [...Object.entries(fieldsOf(config['provider_api_keys'])), [textOf(vendor) ?? '', own] as const]
  for (const [provider, variable] of named) {
    const value = variables.get(textOf(variable) ?? '')
    if (value && provider !== '') draft.keys.push({ provider: providerName(provider), variable: undefined, value })
  }
  for (const [variable, value] of variables) if (value !== '') draft.keys.push({ provider: undefined, variable, value })
}

function readSettings(draft: HomeDraft, config: Fields): void {
  const { provider, model } = fieldsOf(config['default_model'])
  const name = textOf(model)
  const vendor = textOf(provider)
  if (name !== undefined)
    draft.settings.push({
      key: 'default_model',
      value: vendor === undefined ? name : `${providerName(vendor)}/${name}`,
    })
}

/** The agents by id: those of the database, then files that are in none. */
async function readAgents(
  draft: HomeDraft,
  folder: SourceFolder,
  database: ForeignDatabase | undefined,
): Promise<ReadonlyMap<string, string>> {
  const ids = new Map<string, string>()
  const stored = new Map<string, Fields>()
  for (const row of database?.rows('agents', ['id', 'name', 'manifest']) ?? []) {
    const name = String(row['name'])
    ids.set(String(row['id']), name)
    ids.set(name, name)
    try {
      stored.set(name, fieldsOf(await decodePacked(row['manifest'])))
    } catch (error) {
      draft.leave('agent', name, `its manifest in the database cannot be read: ${messageOf(error)}`)
    }
  }
  for (const below of ['agents', 'workspaces/agents']) {
    for (const { name, isFolder } of await folder.list(below)) {
      const file = `${below}/${name}/agent.toml`
      if (!isFolder || !(await folder.has(file))) continue
      const manifest = await readFields(folder, file)
      const key = textOf(manifest?.['name']) ?? name
      if (!manifest || draft.agents.some((agent) => agent.key === key)) continue
      stored.delete(key)
      await addAgent(draft, folder, key, manifest, 'toml', `${below}/${name}`)
      ids.set(key, key)
    }
  }
  for (const [name, manifest] of stored) await addAgent(draft, folder, name, manifest, 'database', undefined)
  return ids
}

async function addAgent(
  draft: HomeDraft,
  folder: SourceFolder,
  key: string,
  stored: Fields,
  format: 'toml' | 'database',
  own: string | undefined,
): Promise<void> {
  // The name is the key, and the path of the workspace is one of the other machine.
  const { kept, removed } = withoutSecrets(stored)
  const manifest = Object.fromEntries(Object.entries(kept).filter(([name]) => name !== 'name' && name !== 'workspace'))
  for (const name of removed)
    draft.leave(
      'agent',
      `${key}: ${name}`,
      `a manifest has no secrets here: ${commandLine('providers set-key <provider>')}`,
    )
  const candidates = [
    `workspaces/${key}`,
    `workspaces/agents/${key}`,
    ...(own === undefined ? [] : [`${own}/workspace`]),
  ]
  let workspace: string | undefined
  for (const one of candidates) if (workspace === undefined && (await folder.hasFolder(one))) workspace = one
  draft.agents.push({ key, name: key, format, manifest: withProvider(manifest), workspace, warnings: [] })
  if (workspace !== undefined && (await folder.has(`${workspace}/MEMORY.md`)))
    await readMemoryFile(draft, folder, `${workspace}/MEMORY.md`, key)
}
function withProvider(manifest: Fields): Fields {
  const model = fieldsOf(manifest['model'])
  const provider = textOf(model['provider'])
  return provider === undefined ? manifest : { ...manifest, model: { ...model, provider: providerName(provider) } }
}

async function readAutomation(draft: HomeDraft, folder: SourceFolder, ids: ReadonlyMap<string, string>): Promise<void> {
  for (const file of ['data/cron_jobs.json', 'cron_jobs.json']) {
    if (!(await folder.has(file))) continue
    for (const entry of listOf(await readValue(folder, file))) readJob(draft, fieldsOf(entry), ids)
    break
  }
  for (const { name, isFolder } of await folder.list('workflows')) {
    if (isFolder || !/\.(json|toml|ya?ml)$/.test(name)) continue
    const fields = await readFields(folder, `workflows/${name}`)
    const title = textOf(fields?.['name']) ?? name.replace(/\.\w+$/, '')
    if (fields) draft.workflows.push({ key: textOf(fields['id']) ?? name, name: title, definition: fields })
  }
  if (await folder.has('trigger_jobs.json'))
    for (const entry of listOf(await readValue(folder, 'trigger_jobs.json'))) readTrigger(draft, fieldsOf(entry), ids)
}

/** `{ job: { id, agent_id, name, schedule, action, delivery }, one_shot }`, of older versions the job alone. */
function readJob(draft: HomeDraft, entry: Fields, ids: ReadonlyMap<string, string>): void {
  const job = 'job' in entry ? fieldsOf(entry['job']) : entry
  const key = textOf(job['id'])
  const name = textOf(job['name']) ?? key ?? 'a schedule'
  const agent = ids.get(textOf(job['agent_id']) ?? '')
  if (key === undefined) return draft.leave('cron', name, 'it has no id')
  if (agent === undefined) return draft.leave('cron', name, 'its agent is not there')
  const { kind } = fieldsOf(job['action'])
  const goes = textOf(fieldsOf(job['delivery'])['kind'])
  draft.jobs.push({
    key,
    name,
    agent,
    body: {
      name: nameOf(name),
      schedule: job['schedule'],
      action: job['action'],
      ...(entry['one_shot'] === true && { one_shot: true }),
    },
    warnings: [
      ...(goes === undefined || goes === 'none' ? [] : [`its answers went to a ${goes}: add that as delivery_targets`]),
      ...(kind === 'workflow' ? ['it runs a workflow, by its name or id there'] : []),
    ],
  })
}

/** A trigger as `GET /api/triggers` shows it there. */
function readTrigger(draft: HomeDraft, entry: Fields, ids: ReadonlyMap<string, string>): void {
  const key = textOf(entry['id'])
  const agent = ids.get(textOf(entry['agent_id']) ?? '')
  if (key === undefined) return draft.leave('trigger', 'a trigger', 'it has no id')
  if (agent === undefined) return draft.leave('trigger', key, 'its agent is not there')
  const { pattern, prompt_template: template, max_fires: maxFires, cooldown_secs: cooldown } = entry
  draft.triggers.push({
    key,
    agent,
    body: {
      pattern,
      ...(textOf(template) !== undefined && { prompt_template: template }),
      ...(typeof maxFires === 'number' && { max_fires: maxFires }),
      ...(typeof cooldown === 'number' && { cooldown_secs: cooldown }),
    },
  })
}

/** Tables with rows that do not come over. */
function leaveTables(draft: HomeDraft, database: ForeignDatabase, type: string): void {
  const tables: readonly (readonly [table: string, column: string, reason: string])[] = [
    ['entities', 'id', 'the graph of knowledge is made anew from conversations'],
    ['task_queue', 'id', 'tasks are made anew'],
    ['paired_devices', 'device_id', 'devices are paired anew'],
    ['audit_entries', 'seq', 'the trail of another system is no part of the trail here: keep the file'],
    ['usage_events', 'id', 'what the other system spent is not counted here'],
  ]
  for (const [table, column, reason] of tables)
    for (const _ of database.rows(table, [column])) {
      draft.leave('config', `data/${type}.db: ${table}`, reason)
      break
    }
}
