import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import * as v from 'valibot'
import type { Member, MemberProblem, OwnedCount } from './contract.ts'
import type { Difference } from './differences.ts'
import type { Members } from './members.ts'
import { Changed, ClusterView, Drain } from './schema.ts'

export interface ClusterRoutesDeps {
  readonly members: Members
  readonly isShared: boolean
  readonly owned: () => Promise<readonly OwnedCount[]>
  readonly problems: () => Promise<readonly MemberProblem[]>
  readonly differences: () => Promise<readonly Difference[]>
}

export function clusterRoutes(deps: ClusterRoutesDeps): readonly AnyRoute[] {
  return [listRoute(deps), drainRoute(deps), resumeRoute(deps)]
}

function listRoute({ members, isShared, owned, problems, differences }: ClusterRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/cluster',
    summary: 'The daemons on the database, what they work on, and how they differ',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: ClusterView,
    async handle() {
      const [list, counts, open, different] = await Promise.all([members.list(), owned(), problems(), differences()])
      return {
        shared: isShared,
        members: list.map((member) => ({
          id: member.id,
          name: member.name,
          host_name: member.hostName,
          address: member.address ?? null,
          version: member.version,
          started_at: member.startedAt,
          state: member.state,
          self: member.id === members.self,
          seen_secs: member.seenSecs,
          lease_secs: member.leaseSecs,
          owned: sumOf(counts.filter(isOf(member))),
          problems: [
            ...(member.lacks === undefined ? [] : [`its plugins failed, it takes nothing over: ${member.lacks}`]),
            ...open.filter(isOf(member)).map(({ text }) => text),
          ],
          differences: different.filter(({ id }) => id === member.id).flatMap(({ keys }) => keys),
        })),
      }
    },
  })
}
const isOf =
  ({ id, homeId }: Member) =>
  ({ owner }: { readonly owner: string }): boolean =>
    owner === id || owner === homeId
function sumOf(counts: readonly OwnedCount[]): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {}
  for (const { what, count } of counts) sums[what] = (sums[what] ?? 0) + count
  return sums
}

const Params = v.object({
  id: v.pipe(v.string(), v.description('An id of GET /api/cluster; `self` for the daemon that answers.')),
})
const idOf = (id: string, { self }: Members): string => (id === 'self' ? self : id)

function drainRoute({ members }: ClusterRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/cluster/members/:id/drain',
    summary: 'Let a daemon take nothing more over, and stop it if asked',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: Params,
    body: Drain,
    returns: Changed,
    async handle({ params, body: { stop } }) {
      const id = idOf(params.id, members)
      await members.setState(id, stop ? 'stopping' : 'draining')
      return { id, state: 'draining' as const }
    },
  })
}
function resumeRoute({ members }: ClusterRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/cluster/members/:id/undrain',
    summary: 'Let a daemon that was drained take work again',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: Params,
    returns: Changed,
    async handle({ params }) {
      const id = idOf(params.id, members)
      await members.setState(id, 'active')
      return { id, state: 'active' as const }
    },
  })
}
