import { matchesWildcard } from 'svc/internal'
import type { Manifest } from '../agents/contract.ts'

/** Whether the manifest lets the agent use a skill: an empty list is all of them. */
export function allowsSkill({ skills, skills_disabled: disabled }: Manifest, name: string): boolean {
  return !disabled && (skills.length === 0 || skills.some((pattern) => matchesWildcard(pattern, name)))
}
