import { idempotencyKey } from 'svc/sdk'
import type { Recovery, ToolCallContext } from 'svc/sdk'
import type { Instances } from './instances.ts'
import type { Values } from './schema.ts'
import type { HandViews } from './views.ts'

/** What the tools of agents do. */
export class HandToolCalls {
  readonly #instances: Instances
  readonly #views: HandViews
  constructor(instances: Instances, views: HandViews) {
    this.#instances = instances
    this.#views = views
  }

  async list(): Promise<string> {
    const [{ hands }, { instances }] = await Promise.all([this.#views.list(), this.#views.instances()])
    return JSON.stringify({
      hands: hands.map(({ id, name, description, requirements, requirements_met: usable }) => ({
        id,
        name,
        description,
        usable,
        lacks: requirements.filter(({ satisfied }) => !satisfied).map(({ label }) => label),
      })),
      instances: instances.map(({ instance_id, hand_id, instance_name, status, agent_name }) => ({
        instance_id,
        hand_id,
        instance_name,
        status,
        agent_name,
      })),
    })
  }
  async status(handId: string): Promise<string> {
    const [{ instances }, { requirements, name }] = await Promise.all([
      this.#views.instances(handId),
      this.#views.detail(handId),
    ])
    const figures = await Promise.all(instances.map(({ instance_id: id }) => this.#views.stats(id)))
    return JSON.stringify({
      hand_id: handId,
      name,
      lacks: requirements.filter(({ satisfied }) => !satisfied).map(({ label }) => label),
      instances: instances.map((instance, at) => ({ ...instance, metrics: figures[at]?.metrics })),
    })
  }
  async activate(
    input: {
      readonly hand_id: string
      readonly config: Values
      readonly instance_name?: string | undefined
    },
    call: ToolCallContext,
  ): Promise<string> {
    const { hand_id: handId, config, instance_name: name } = input
    const made = await this.#instances.activate(handId, { config, name, id: idempotencyKey(call), by: call })
    return JSON.stringify(await this.#views.instance(made))
  }
  async recover(call: ToolCallContext): Promise<Recovery> {
    const made = await this.#instances.find(idempotencyKey(call))
    return made ? { outcome: 'done', text: JSON.stringify(await this.#views.instance(made)) } : { outcome: 'repeat' }
  }
  async deactivate(id: string, { agentId }: ToolCallContext): Promise<string> {
    await this.#instances.deactivate(id, agentId)
    return `The instance ${id} and its agent are removed.`
  }
}
