import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type * as Handlers from './handlers.ts'
import { Detected, MigrateBody, Migrated, ScanBody, Scanned, Status } from './schema.ts'
import type { Migrations } from './service.ts'

const auth = 'bearer' as const
// Reading is lasting as well: what it shows of the machine nothing else here shows, so it is for the owner's key.
const effect = 'lasting' as const

type Load = () => Promise<{ readonly handlers: typeof Handlers; readonly migrations: Migrations }>

export function migrateRoutes(open: () => Promise<Migrations>): readonly AnyRoute[] {
  const load: Load = async () => {
    const [handlers, migrations] = await Promise.all([import('./handlers.ts'), open()])
    return { handlers, migrations }
  }
  return [detectRoute(load), scanRoute(load), migrateRoute(load), statusRoute(load)]
}

const detectRoute = (load: Load): AnyRoute =>
  defineRoute({
    method: 'GET',
    path: '/api/migrate/detect',
    summary: 'Homes of other systems on the machine of the daemon',
    auth,
    effect,
    cost: 20,
    returns: Detected,
    async handle() {
      const { handlers, migrations } = await load()
      return handlers.detect(migrations)
    },
  })

const scanRoute = (load: Load): AnyRoute =>
  defineRoute({
    method: 'POST',
    path: '/api/migrate/scan',
    summary: 'What a home of another system holds',
    description: 'Nothing in the folder is changed or run, and no link in it is followed.',
    auth,
    effect,
    cost: 20,
    body: ScanBody,
    returns: Scanned,
    errors: ['forbidden', 'payload_too_large'],
    example: { body: { path: '/home/you/.openclaw' } },
    async handle({ body }) {
      const { handlers, migrations } = await load()
      return handlers.scan(migrations, body.path)
    },
  })

const migrateRoute = (load: Load): AnyRoute =>
  defineRoute({
    method: 'POST',
    path: '/api/migrate',
    summary: 'Take over what a home of another system holds',
    description:
      'Nothing here is overwritten, and what came over before does not come over again. Channels, schedules and ' +
      'triggers come over disabled. Answers when all is done; `GET /api/migrate/status` says how far it is.',
    auth,
    effect,
    cost: 100,
    body: MigrateBody,
    returns: Migrated,
    errors: ['forbidden', 'conflict', 'payload_too_large', 'service_unavailable'],
    example: { body: { source: '/home/you/.openclaw', dry_run: true } },
    async handle({ body }) {
      const { handlers, migrations } = await load()
      return handlers.migrate(migrations, body)
    },
  })

const statusRoute = (load: Load): AnyRoute =>
  defineRoute({
    method: 'GET',
    path: '/api/migrate/status',
    summary: 'The last migration since the daemon started, and how far it is',
    auth,
    effect,
    cost: 5,
    returns: Status,
    async handle() {
      const { handlers, migrations } = await load()
      return handlers.status(migrations)
    },
  })
