import { describe, expect, it } from 'vitest'
import { Refusal } from 'svc/sdk'
import { knownKeys } from '../../../plugins/agents/manifest-schema.ts'
import { editManifest, parseManifest } from '../../../plugins/agents/manifest.ts'
import { withLine } from '../../../plugins/agents/new-manifest.ts'

function refusal(toml: string): Refusal {
  try {
    parseManifest(toml)
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
  throw new Error('it was accepted')
}

describe('parsing a manifest', () => {
  it('an empty manifest has the documented defaults', () => {
    const { document, warnings } = parseManifest('')
    expect(document).toMatchObject({
      name: 'unnamed',
      version: '0.1.0',
      description: '',
      author: '',
      module: 'builtin:chat',
      tags: [],
      priority: 'Normal',
      enabled: true,
      model: { provider: 'default', model: 'default', system_prompt: '', max_tokens: 4096, temperature: 0.7 },
      resources: {
        max_memory_bytes: 268_435_456,
        max_cpu_time_ms: 30_000,
        max_tool_calls_per_minute: 60,
        max_network_bytes_per_hour: 104_857_600,
      },
      autonomous: { max_iterations: 50, max_restarts: 10, heartbeat_interval_secs: 30 },
      routing: { simple_threshold: 100, complex_threshold: 500 },
    })
    expect(warnings).toEqual([])
  })

  it('a missing list grants nothing, but an agent may use its own memory', () => {
    expect(parseManifest('').document.capabilities).toMatchObject({
      tools: [],
      network: [],
      shell: [],
      agent_spawn: false,
      memory_read: ['self.*'],
      memory_write: ['self.*'],
    })
  })

  it('a single string counts as a list of one', () => {
    expect(parseManifest('tags = "a"\n[capabilities]\ntools = "kv_get"').document).toMatchObject({
      tags: ['a'],
      capabilities: { tools: ['kv_get'] },
    })
  })

  it('an empty provider or model, and auto, mean the default', () => {
    expect(parseManifest('[model]\nprovider = "auto"\nmodel = ""').document.model).toMatchObject({
      provider: 'default',
      model: 'default',
    })
  })

  it('the four forms of a schedule are accepted', () => {
    expect(parseManifest('schedule = "reactive"').document.schedule).toBe('reactive')
    expect(parseManifest('schedule = { periodic = { cron = "0 8 * * *" } }').document.schedule).toEqual({
      periodic: { cron: '0 8 * * *' },
    })
    expect(parseManifest('[schedule.proactive]\nconditions = ["x"]').document.schedule).toEqual({
      proactive: { conditions: ['x'] },
    })
    expect(parseManifest('[schedule.continuous]').document.schedule).toEqual({
      continuous: { check_interval_secs: 300 },
    })
  })

  it('a profile stands for its tools, unless the manifest names tools itself', () => {
    const tools = (toml: string) => parseManifest(toml).document.capabilities.tools
    expect(tools('profile = "minimal"')).toEqual(['file_read', 'file_list'])
    expect(tools('profile = "full"\n[capabilities]\nnetwork = ["*"]')).toEqual(['*'])
    expect(tools('profile = "full"\n[capabilities]\ntools = ["kv_get"]')).toEqual(['kv_get'])
    expect(tools('profile = "full"\n[capabilities]\ntools = []')).toEqual([])
    expect(tools('profile = "custom"')).toEqual([])
    expect(tools('')).toEqual([])
  })

  it('keys of features that are not there are named, unless they say the default', () => {
    const warnings = (toml: string): readonly string[] => parseManifest(toml).warnings
    expect(
      warnings(
        ['priority = "High"', '[resources]', 'max_memory_bytes = 1000', '[tools.web_fetch]', 'limit = 1'].join('\n'),
      ),
    ).toEqual(
      ['priority', 'tools', 'resources.max_memory_bytes'].map((key) => `"${key}" is kept and has no effect yet`),
    )
    expect(warnings('[thinking]\nenabled = true\nbudget_tokens = 2000')).toEqual([
      '"thinking.budget_tokens" is kept and has no effect yet',
    ])
    expect(warnings('[autonomous]\nquiet_hours = "10pm to 6am"')).toEqual([
      '"autonomous.quiet_hours" has no effect: "10pm to 6am" is not two times such as 22:00-07:00',
    ])
    expect(warnings('[capabilities]\nofp_discover = true\nofp_connect = ["bob"]')).toEqual([])
    expect(warnings('[autonomous]\nquiet_hours = "22:00 - 6:30"')).toEqual([])
    expect(warnings('[capabilities]\nnetwork = ["https://me@x.example:8443/y", "a b"]')).toEqual([
      '"capabilities.network" allows nothing with it: "https://me@x.example:8443/y" is no host: write "x.example:8443"',
      '"capabilities.network" allows nothing with it: "a b" is no host: write one such as "api.example.com" or "*.example.com"',
    ])
    expect(warnings('[capabilities]\nnetwork = ["*", "*.x.example:8080", "api.*:*", "[::1]:80", "10.0.0.1"]')).toEqual(
      [],
    )
    expect(
      warnings(
        [
          'priority = "Normal"',
          'channels = []',
          'schedule = "reactive"',
          'auto_evolve = false',
          '[resources]',
          'max_memory_bytes = 268435456',
          '[autonomous]',
          'max_restarts = 10',
        ].join('\n'),
      ),
    ).toEqual([])
  })

  it('a wrong value of any key is refused with line and key', () => {
    // Those of schedules and triggers are looked at when an agent is made of them.
    const sections = [...knownKeys].filter(([name]) => !/^(schedule|triggers)/.test(name))
    const refusalOf = (toml: string): string | undefined => {
      try {
        parseManifest(toml)
      } catch (error) {
        return error instanceof Refusal ? (withLine(toml, error) as Error).message : undefined
      }
      return undefined
    }
    for (const [section, keys] of sections) {
      const head =
        section === '' ? '# a manifest\n' : section === 'fallback_models' ? `[[${section}]]\n` : `[${section}]\n`
      for (const key of keys) {
        // No key takes a number and a text of one character outside of what a name may be.
        const told = ['7', '"\\u0001"', '-1.5'].map((value) => refusalOf(`version = "1"\n${head}${key} = ${value}\n`))
        const path = section === '' ? key : section === 'fallback_models' ? `${section}.0.${key}` : `${section}.${key}`
        const place = new RegExp(`^manifest_toml:3: ${RegExp.escape(path)}: `)
        if (key !== 'version')
          expect([path, told.some((text) => text !== undefined && place.test(text))]).toEqual([path, true])
      }
    }
  })

  it('keys of a schedule and of triggers that mean nothing are named', () => {
    expect(
      parseManifest('[[triggers]]\npattern = "all"\nmax_fire = 1\n[schedule.periodic]\ncron = "0 8 * * *"\npromt = "x"')
        .warnings,
    ).toEqual([
      'unknown key "schedule.periodic.promt" is kept and has no effect; did you mean "schedule.periodic.prompt"?',
      'unknown key "triggers.max_fire" is kept and has no effect; did you mean "triggers.max_fires"?',
    ])
  })

  it('what is put into a conversation is checked', () => {
    expect(refusal('[[context_injection]]\nposition = "system"').message).toContain('context_injection.0.content')
    expect(refusal('[[context_injection]]\ncontent = "x"\nposition = "nowhere"').message).toContain(
      'context_injection.0.position',
    )
  })

  it('unknown keys are kept and named, at the top and in tables', () => {
    const { document, warnings } = parseManifest(
      'colour = "red"\n[model]\nmodle = "x"\n[[fallback_models]]\nprovider = "a"\nspeed = 1',
    )
    expect(document).toMatchObject({ colour: 'red', model: { modle: 'x' } })
    expect(warnings).toEqual([
      'unknown key "colour" is kept and has no effect',
      'unknown key "model.modle" is kept and has no effect; did you mean "model.model"?',
      'unknown key "fallback_models.speed" is kept and has no effect',
    ])
  })

  it('free tables raise no warning', () => {
    expect(parseManifest('[metadata]\nanything = 1\n[model.extra_params]\ntop_k = 4').warnings).toEqual([])
  })

  it('a module that is not there is said to be not there', () => {
    expect(parseManifest('module = "wasm:x.wasm"').warnings).toEqual([
      'module "wasm:x.wasm" is not available; the agent runs as "builtin:chat"',
    ])
  })

  it('malformed TOML is refused with line and column', () => {
    const { code, message, details } = refusal('name = "a"\nversion = = 1\n')
    expect(code).toBe('invalid_request')
    expect(details).toMatchObject({ line: 2, column: 11 })
    expect(message).toContain('line 2, column 11')
  })

  it.each([
    ['name = 5', 'name'],
    ['name = ""', 'name'],
    ['name = "\\u0000"', 'name'],
    [`name = "${'n'.repeat(257)}"`, 'name'],
    [`description = "${'d'.repeat(4097)}"`, 'description'],
    ['tags = [1]', 'tags'],
    ['model = "gpt"', 'model'],
    ['[model]\ntemperature = 3', 'model.temperature'],
    ['[model]\ntemperature = nan', 'model.temperature'],
    ['[model]\nmax_tokens = 1.5', 'model.max_tokens'],
    ['[model]\nmax_tokens = inf', 'model.max_tokens'],
    [`[model]\nsystem_prompt = "${'p'.repeat(65_537)}"`, 'model.system_prompt'],
    ['[capabilities]\ntools = { a = 1 }', 'capabilities.tools'],
    ['[autonomous]\nmax_iterations = 0', 'autonomous.max_iterations'],
    ['enabled = "yes"', 'enabled'],
    ['priority = "Urgent"', 'priority'],
    ['schedule = "sometimes"', 'schedule'],
  ])('%s is refused and the key is named', (toml, key) => {
    const { code, message } = refusal(toml)
    expect(code).toBe('invalid_request')
    expect(message.startsWith(`${key}:`)).toBe(true)
  })

  it('a number too large to keep is refused, not rounded', () => {
    expect(refusal('max_history_messages = 99999999999999999999').message).toContain('line 1')
  })

  it('half a surrogate pair is refused', () => {
    expect(refusal('name = "\ud800"').code).toBe('invalid_request')
  })

  it('a key called __proto__ changes nothing but itself', () => {
    const { document, warnings } = parseManifest('[__proto__]\nenabled = false')
    expect(document.enabled).toBe(true)
    expect(warnings).toHaveLength(1)
    expect('polluted' in {}).toBe(false)
  })
})

describe('editing a manifest', () => {
  it('changes what was asked and keeps the rest, unknown keys too', () => {
    const edited = editManifest('colour = "red"\nname = "a"\n[model]\nmodel = "x"\ntemperature = 0.2', {
      name: 'b',
      'model.model': 'y',
      tags: ['t'],
    })
    expect(parseManifest(edited).document).toMatchObject({
      colour: 'red',
      name: 'b',
      tags: ['t'],
      model: { model: 'y', temperature: 0.2 },
    })
  })
  it('makes the table when there is none, and removes on undefined', () => {
    const edited = editManifest('description = "d"', { 'model.provider': 'openai', description: undefined })
    expect(parseManifest(edited).document).toMatchObject({ description: '', model: { provider: 'openai' } })
  })
})
