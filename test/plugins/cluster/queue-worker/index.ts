import { definePlugin, defineRoute } from 'svc/sdk'
import * as v from 'valibot'
import { Queue } from '../../../../plugins/queue/contract.ts'

/** Jobs say at which daemon they run, and end when the test says so. */
export default definePlugin({
  name: 'queue-worker',
  version: '1.0.0',
  config: v.object({ name: v.string() }),
  requires: { queue: Queue },
  setup({ config, db, own, routes, services: { queue } }) {
    const jobs = Reflect.get(globalThis, Symbol.for('svc.test.jobs')) as {
      begun(job: string, daemon: string): Promise<void>
    }
    own(
      'worker',
      queue.work('probe', {
        async run({ id, signal }) {
          const stopped = Promise.withResolvers<never>()
          signal.addEventListener('abort', () => stopped.reject(signal.reason), { once: true })
          await Promise.race([jobs.begun(id, config.name), stopped.promise])
          return { outcome: 'done' }
        },
      }),
    )
    routes.add(
      defineRoute({
        method: 'POST',
        path: '/api/jobs/:id',
        summary: 'Adds a job',
        auth: 'bearer',
        effect: 'own',
        cost: 1,
        params: v.object({ id: v.string() }),
        returns: v.object({}),
        async handle({ params: { id } }) {
          await db.batch([queue.add({ lane: 'probe', id, payload: {} })])
          return {}
        },
      }),
    )
    return {}
  },
})
