import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { ChangeLog } from './changes/change-log.ts'
import type { WorkspaceFiles } from './contract.ts'
import type { AgentFiles } from './agent-files.ts'

/** A file or its name may hold the words of a web page that was read in another session (security facts 1.2). */
const EXTERNAL = ['ExternalNetwork']
const path = v.pipe(v.string(), v.maxLength(1024), v.description('Relative to the workspace'))

export function fileTools(
  workspaces: WorkspaceFiles,
  changes: () => Promise<ChangeLog>,
  audit: Audit,
): readonly AnyTool[] {
  let opened: AgentFiles | undefined
  const files = async (): Promise<AgentFiles> =>
    (opened ??= new (await import('./agent-files.ts')).AgentFiles(workspaces, changes, audit))
  return [readTool(files), writeTool(files), listTool(files), createTool(files), patchTool(files), searchTool(files)]
}

type Open = () => Promise<AgentFiles>

function readTool(files: Open): AnyTool {
  return defineTool({
    name: 'file_read',
    risk: 'read',
    labels: EXTERNAL,
    description: 'Read a text file of the workspace.',
    input: v.object({ path }),
    async run({ path: name }, { agentId }) {
      const own = await files()
      return own.readText(agentId, await own.fileIn(agentId, name))
    },
  })
}

function writeTool(files: Open): AnyTool {
  return defineTool({
    name: 'file_write',
    risk: 'write',
    description: 'Write a text file of the workspace, replacing its content. Missing folders are created.',
    input: v.object({ path, content: v.string() }),
    assess: () => ({ intent: 'write a file of its workspace' }),
    run: async (input, call) => (await files()).write(call, input.path, input.content),
    recover: async (_, call) => (await files()).recover(call),
  })
}

function listTool(files: Open): AnyTool {
  return defineTool({
    name: 'file_list',
    risk: 'read',
    labels: EXTERNAL,
    description:
      'List a folder of the workspace; "." is the workspace itself. Answers JSON; a file that cannot be read has ' +
      'a `problem`.',
    input: v.object({ path }),
    async run(input, { agentId }) {
      const [own, { listEntries }] = await Promise.all([files(), import('./entries.ts')])
      return listEntries(own.workspaces, agentId, await own.nameIn(agentId, input.path), input.path)
    },
  })
}

function createTool(files: Open): AnyTool {
  return defineTool({
    name: 'create_directory',
    risk: 'write',
    description: 'Make a folder in the workspace, with those above it.',
    input: v.object({ path }),
    run: async (input, { agentId }) => (await files()).createFolder(agentId, input.path),
    recover: () => Promise.resolve({ outcome: 'repeat' }),
  })
}

function patchTool(files: Open): AnyTool {
  return defineTool({
    name: 'apply_patch',
    risk: 'write',
    description:
      'Change several files of the workspace at once, all or none. The patch is "*** Begin Patch", then for each ' +
      'file ' +
      '"*** Update File: <path>" with hunks ("@@" and lines that begin with a space, - or +), "*** Add File: ' +
      '<path>" with ' +
      'lines that begin with +, or "*** Delete File: <path>", and at last "*** End Patch". A unified diff is ' +
      'taken too.',
    input: v.object({ patch: v.pipe(v.string(), v.minLength(1), v.maxLength(1_048_576)) }),
    assess: () => ({ intent: 'change files of its workspace' }),
    async run(input, call) {
      const [own, { applyPatch }] = await Promise.all([files(), import('./file-changes.ts')])
      const done = await applyPatch(own, call, input.patch)
      await own.recordChange(call.agentId, `patch: ${done}`)
      return `Done: ${done}.`
    },
    recover: async (_, call) => (await files()).recover(call),
  })
}

function searchTool(files: Open): AnyTool {
  return defineTool({
    name: 'code_search',
    risk: 'read',
    labels: EXTERNAL,
    description: 'Find lines in the text files of the workspace that contain a literal text. Answers path:line: text.',
    input: v.object({
      query: v.pipe(v.string(), v.minLength(1), v.maxLength(1024)),
      path: v.optional(v.pipe(path, v.description('A folder or a file; the whole workspace when absent')), '.'),
      case_sensitive: v.optional(v.boolean(), false),
      max_results: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)), 100),
    }),
    async run(input, { agentId, signal }) {
      const [own, { search }] = await Promise.all([files(), import('./search.ts')])
      const query = {
        query: input.query,
        caseSensitive: input.case_sensitive,
        maxResults: input.max_results,
        name: await own.nameIn(agentId, input.path),
      }
      return search(own.workspaces, agentId, query, signal)
    },
  })
}
