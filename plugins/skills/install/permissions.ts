import type { SkillManifest } from '../manifest/skill.ts'

/** What whoever installs a skill accepts: what runs, and what that may use. */
export const permissionsOf = ({ runtime, permissions }: Pick<SkillManifest, 'runtime' | 'permissions'>): string[] => [
  ...(runtime === 'prompt_only' ? [] : [`runs:${runtime}`]),
  ...permissions,
]
