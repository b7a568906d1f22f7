import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'

const Profile = v.object({ name: v.string(), tier: v.string(), description: v.string(), tools: v.array(v.string()) })
/** Interface 4.4, `/api/profiles`. */
export function toolProfileRoutes(): readonly AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/profiles',
      summary: 'The tool profiles that a manifest can name',
      auth: 'bearer',
      effect: 'read',
      cost: 1,
      returns: v.object({ profiles: v.array(Profile) }),
      handle: async () => ({ profiles: (await import('./profile-facts.ts')).listProfiles() }),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/profiles/:name',
      summary: 'Read a tool profile',
      auth: 'bearer',
      effect: 'read',
      cost: 1,
      params: v.object({ name: v.pipe(v.string(), v.maxLength(128)) }),
      returns: Profile,
      errors: ['not_found'],
      handle: async ({ params: { name } }) => (await import('./profile-facts.ts')).requireProfile(name),
    }),
  ]
}
