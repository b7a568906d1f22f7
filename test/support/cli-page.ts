import { loadBuiltIns } from '../../core/cli/built-ins.ts'
import type { CommandEntry, CommandTree } from '../../core/cli/command.ts'
import { coreCommands } from '../../core/cli/core-commands.ts'
import { exitMeanings } from '../../core/cli/failure.ts'
import { renderCommand } from '../../core/cli/help.ts'

interface Listed {
  readonly path: readonly string[]
  readonly entry: CommandEntry
}

/** `docs/cli.md`: the help of every command of the core and of the built-in plugins. */
export async function cliPage(): Promise<string> {
  const plugins = await loadBuiltIns()
  // Plugins may share a group.
  const brought = plugins.flatMap(({ commands }) => listCommands([], commands ?? {}))
  const sections = await Promise.all(
    [...listCommands([], coreCommands), ...brought].map(async ({ path, entry }) => {
      const loaded = await entry.load?.()
      if (!loaded) return ''
      const [help] = renderCommand(path, loaded.default, entry.commands).split('\n\nExit codes:')
      return `## svc ${path.join(' ')}\n\n\`\`\`text\n${help}\n\`\`\`\n`
    }),
  )
  return `# Commands

\`svc --help\` lists the commands, \`svc <command> --help\` explains one. Plugins can add commands; this
page lists those of the core and of the built-in plugins.

\`\`\`sh
svc status --json | jq .version      # every command prints JSON on request
svc completion bash > ~/.local/share/bash-completion/completions/svc
\`\`\`

| exit code | meaning |
|---|---|
${exitMeanings.map(([code, meaning]) => `| ${code} | ${meaning} |`).join('\n')}

This page is generated: \`npx vitest run --config test/vitest.config.ts test/architecture/docs.test.ts -u\`.

${sections.filter(Boolean).join('\n')}`
}

function listCommands(path: readonly string[], tree: CommandTree): readonly Listed[] {
  return Object.entries(tree).flatMap(([name, entry]) => [
    { path: [...path, name], entry },
    ...listCommands([...path, name], entry.commands ?? {}),
  ])
}
