import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'agents',
  commands: {
    agent: {
      summary: 'List, spawn, show, edit and kill agents',
      commands: {
        list: { summary: 'List the agents', load: () => import('./cli/list.ts') },
        spawn: { summary: 'Spawn an agent from a manifest', load: () => import('./cli/spawn.ts') },
        new: { summary: 'Make an agent from a template', load: () => import('./cli/new.ts') },
        show: { summary: 'Show one agent', load: () => import('./cli/show.ts') },
        edit: { summary: 'Edit the manifest of an agent', load: () => import('./cli/edit.ts') },
        check: { summary: 'Check a manifest', load: () => import('./cli/check.ts') },
        logs: { summary: 'Show what an agent did', load: () => import('./cli/logs.ts') },
        skills: { summary: 'Show or change the skills of an agent', load: () => import('./cli/skills.ts') },
        kill: { summary: 'End an agent and remove it', load: () => import('./cli/kill.ts') },
      },
    },
    manifest: {
      summary: 'Sign manifests of agents and check signatures',
      commands: {
        keygen: { summary: 'Create a signing key', load: () => import('./cli/manifest-keygen.ts') },
        sign: { summary: 'Sign a manifest', load: () => import('./cli/manifest-sign.ts') },
        verify: { summary: 'Check a signed manifest', load: () => import('./cli/manifest-verify.ts') },
      },
    },
  },
  status: { load: () => import('./cli/status.ts') },
})
