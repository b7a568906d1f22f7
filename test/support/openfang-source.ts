import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { encode } from '@msgpack/msgpack'
import Sqlite from 'better-sqlite3'

/** Writes a home of OpenFang with a thing of each kind for each mark. */
export async function writeOpenFang(path: string, marks: readonly string[]): Promise<void> {
  const files: Record<string, string> = {
    'config.toml': marks
      .map((mark) => `[[channels.telegram]]\naccount_id = "bot-${mark}"\nbot_token = "1:${mark}"\n`)
      .join(''),
    'cron_jobs.json': JSON.stringify(
      marks.map((mark) => ({
        id: `job-${mark}`,
        agent_id: `agent-${mark}`,
        name: `job-${mark}`,
        schedule: { kind: 'every', every_secs: 600 },
        action: { kind: 'agent_turn', message: 'Look.' },
      })),
    ),
    'trigger_jobs.json': JSON.stringify(
      marks.map((mark) => ({
        id: `trigger-${mark}`,
        agent_id: `agent-${mark}`,
        pattern: 'lifecycle',
        prompt_template: 'event: {{event}}',
      })),
    ),
  }
  for (const mark of marks) {
    files[`agents/agent-${mark}/agent.toml`] = `name = "agent-${mark}"\ndescription = "Tends the garden"\n`
    files[`workspaces/agent-${mark}/MEMORY.md`] = '- The hedge is cut in May.\n- The pond freezes in January.\n'
    files[`workspaces/agent-${mark}/notes/today.md`] = 'Water the roses.\n'
    files[`skills/skill-${mark}/SKILL.md`] =
      `---\nname: skill-${mark}\ndescription: Cuts hedges\n---\nCut the hedge ${mark}.\n`
    files[`workflows/${mark}.json`] = JSON.stringify({
      id: `flow-${mark}`,
      name: `flow-${mark}`,
      steps: [{ name: 'one', agent_name: `agent-${mark}`, prompt: 'Look: {{input}}' }],
    })
  }
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(path, name, '..'), { recursive: true })
    await writeFile(join(path, name), text)
  }
  await mkdir(join(path, 'data'))
  const db = new Sqlite(join(path, 'data', 'openfang.db'))
  db.exec(`CREATE TABLE sessions (id TEXT PRIMARY KEY, agent_id TEXT, messages BLOB, created_at TEXT);
    CREATE TABLE kv_store (agent_id TEXT, key TEXT, value BLOB)`)
  for (const mark of marks) {
    db.prepare('INSERT INTO kv_store VALUES (?, ?, ?)').run(`agent-${mark}`, 'pond', Buffer.from('{"deep":2}'))
    const messages = encode([
      { role: 'user', content: 'Is the hedge high?' },
      { role: 'assistant', content: 'It is.' },
    ])
    const at = '2026-01-05T10:00:00Z'
    db.prepare('INSERT INTO sessions VALUES (?, ?, ?, ?)').run(`session-${mark}`, `agent-${mark}`, messages, at)
  }
  db.close()
}
