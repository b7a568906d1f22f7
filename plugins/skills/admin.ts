import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type * as v from 'valibot'
import type { Tools } from 'svc/sdk'
import type { SkillCatalog } from './catalog.ts'
import { newSkill } from './install/create.ts'
import type { Hubs } from './hub/open.ts'
import type { Installer } from './install/service.ts'
import type { Created, CreateSkill, InstallRequest, InstallResult, Tested, Uninstalled } from './schema.ts'
import { runCases } from './testing/cases.ts'

export interface SkillAdminDeps {
  readonly installer: Installer
  readonly hubs: () => Promise<Hubs>
  readonly catalog: () => Promise<SkillCatalog>
  readonly tools: Tools
  /** `<home>/skills`. */
  readonly folder: string
}

/** What the routes that change skills do, in the shapes of the interface. */
export class SkillAdmin {
  readonly #deps: SkillAdminDeps
  constructor(deps: SkillAdminDeps) {
    this.#deps = deps
  }

  async install(request: InstallRequest): Promise<v.InferOutput<typeof InstallResult>> {
    const outcome = await this.#deps.installer.install(request)
    const { conversion, manifest, permissions, sha256, signedBy, status, warnings } = outcome
    return {
      status,
      skill: manifest.name,
      version: manifest.version,
      description: manifest.description,
      runtime: manifest.runtime,
      sha256,
      signed_by: signedBy,
      permissions: [...permissions],
      warnings: [...warnings],
      converted_from: conversion?.from ?? null,
      tool_translations: [...(conversion?.translations ?? [])],
    }
  }
  hubs(): Promise<Hubs> {
    return this.#deps.hubs()
  }
  /** What the hub says of a skill, and whether it is installed here. */
  async ofHub(slug: string, owner: string | undefined) {
    const [{ toName }, { clawhub }, catalog] = await Promise.all([
      import('./hub/convert.ts'),
      this.hubs(),
      this.#deps.catalog(),
    ])
    const found = await clawhub.detail(slug, owner)
    return { ...found, installed: catalog.find(toName(found.slug))?.origin === 'local' }
  }
  async remove(name: string): Promise<v.InferOutput<typeof Uninstalled>> {
    await this.#deps.installer.remove(name)
    return { status: 'uninstalled', skill: name }
  }
  async create(request: CreateSkill): Promise<v.InferOutput<typeof Created>> {
    const { name, prompt_context: text } = request
    await this.#deps.installer.create(name, newSkill({ ...request, text }))
    return { status: 'created', skill: name, path: join(this.#deps.folder, name) }
  }
  async test(name: string, signal: AbortSignal): Promise<v.InferOutput<typeof Tested>> {
    const { tools } = this.#deps
    const catalog = await this.#deps.catalog()
    const id = randomUUID()
    const call = { agentId: '', agentName: 'a test of the skill', sessionId: id, turnId: id, callId: id, signal }
    const results = await runCases({ catalog, tools }, catalog.require(name), call)
    const passed = results.filter((each) => each.passed).length
    return { skill: name, passed, failed: results.length - passed, results: [...results] }
  }
}
