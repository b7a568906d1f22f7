import * as v from 'valibot'
import { findNearest, suggest } from 'svc/internal'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { profileTools } from './profiles.ts'

/** What each tool profile is for, and the tier of models that suits such work. */
const profileFacts: Readonly<Record<string, { readonly tier: string; readonly description: string }>> = {
  minimal: { tier: 'fast', description: 'Reads files of its workspace and changes nothing' },
  coding: { tier: 'smart', description: 'Reads and writes files, runs programs and reads pages' },
  research: { tier: 'frontier', description: 'Searches and reads the web and keeps what it finds in files' },
  messaging: { tier: 'fast', description: 'Talks to other agents and remembers' },
  automation: { tier: 'balanced', description: 'Files, programs, the web, other agents and memory' },
  full: { tier: 'smart', description: 'Every tool of the daemon' },
  custom: { tier: 'balanced', description: 'The tools that the manifest itself lists' },
}

const Profile = v.object({ name: v.string(), tier: v.string(), description: v.string(), tools: v.array(v.string()) })
const toProfile = (name: string): v.InferOutput<typeof Profile> => {
  const { tier = 'balanced', description = '' } = profileFacts[name] ?? {}
  return { name, tier, description, tools: [...(profileTools[name] ?? [])] }
}

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
      handle: () => ({ profiles: Object.keys(profileTools).map(toProfile) }),
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
      handle({ params: { name } }) {
        if (Object.hasOwn(profileTools, name)) return toProfile(name)
        const nearest = suggest(findNearest(name, Object.keys(profileTools)))
        throw new Refusal('not_found', `There is no profile "${name}"${nearest}`)
      },
    }),
  ]
}
