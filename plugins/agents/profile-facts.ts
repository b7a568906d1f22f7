import { findNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
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

export interface ToolProfile {
  readonly name: string
  readonly tier: string
  readonly description: string
  readonly tools: string[]
}
const toProfile = (name: string): ToolProfile => {
  const { tier = 'balanced', description = '' } = profileFacts[name] ?? {}
  return { name, tier, description, tools: [...(profileTools[name] ?? [])] }
}

export const listProfiles = (): ToolProfile[] => Object.keys(profileTools).map(toProfile)

/** Throws `not_found`, with the nearest name. */
export function requireProfile(name: string): ToolProfile {
  if (Object.hasOwn(profileTools, name)) return toProfile(name)
  const nearest = suggest(findNearest(name, Object.keys(profileTools)))
  throw new Refusal('not_found', `There is no profile "${name}"${nearest}`)
}
