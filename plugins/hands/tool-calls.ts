import { idempotencyKey } from 'svc/sdk'
import type { Recovery, ToolCallContext } from 'svc/sdk'
import type { Family } from '../agents/contract.ts'
import type { Instances } from './instances.ts'
import type { Values } from './schema.ts'
import type { HandViews } from './views.ts'

/** What the tools of agents do. */
export class HandToolCalls {
  readonly #instances: Instances
  readonly #views: HandViews
  readonly #family: Pick<Family, 'isDescendant'>
  constructor(instances: Instances, views: HandViews, family: Pick<Family, 'isDescendant'>) {
    this.#instances = instances
    this.#views = views
    this.#family = family
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
  /** Settings and figures of its own hands, and of those that it activated; of others, how they do. */
  async status(handId: string, { agentId: asker }: ToolCallContext): Promise<string> {
    const [{ instances: all }, { requirements, name }] = await Promise.all([
      this.#views.instances(handId),
      this.#views.detail(handId),
    ])
    const instances = await Promise.all(
      all.map(async (instance) => {
        const { config, ...state } = instance
        const { agent_id: id, instance_id } = instance
        if (id !== asker && !(await this.#family.isDescendant(asker, id))) return state
        return { ...state, config, metrics: (await this.#views.stats(instance_id)).metrics }
      }),
    )
    return JSON.stringify({
      hand_id: handId,
      name,
      lacks: requirements.filter(({ satisfied }) => !satisfied).map(({ label }) => label),
      instances,
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
