import type { Vendor } from './quirks.ts'

export type { Quirks, Vendor } from './quirks.ts'

const reasoning = ['o1', 'o3', 'o4', 'gpt-5', 'gpt-6']
const effort = { models: reasoning, on: { reasoning_effort: 'high' }, off: { reasoning_effort: 'low' } }
const switched = (...models: string[]) => ({ models, on: { thinking: { type: 'enabled' } }, off: { thinking: { type: 'disabled' } } })
const small = { model: 'text-embedding-3-small', texts: 256, chars: 400_000 }
const openai = { maxTokensField: 'max_completion_tokens', noTemperature: reasoning, thinking: effort, embedding: small } as const

/** Every vendor that speaks OpenAI's chat completions. One more is one more row. Addresses and variables are those of the vendors' own documentation. */
export const vendors: readonly Vendor[] = [
  { name: 'openai', title: 'OpenAI', envVar: 'OPENAI_API_KEY', baseUrl: 'https://api.openai.com/v1', defaultModel: 'gpt-5-mini', ...openai },
  // A model is the name of a deployment; it is best named as the model it deploys, so that its price is known.
  { name: 'azure', title: 'Azure OpenAI', envVar: 'AZURE_OPENAI_API_KEY', otherEnvVars: ['AZURE_API_KEY'], addressVar: 'AZURE_OPENAI_ENDPOINT', access: 'azure', defaultModel: 'gpt-5-mini', noModels: true, ...openai },
  { name: 'github-copilot', title: 'GitHub Copilot', envVar: 'GITHUB_TOKEN', otherEnvVars: ['GH_TOKEN'], sharedKey: true, baseUrl: 'https://api.githubcopilot.com', access: 'copilot', defaultModel: 'gpt-5-mini', noTemperature: reasoning, noEmbeddings: true },
  { name: 'groq', title: 'Groq', envVar: 'GROQ_API_KEY', baseUrl: 'https://api.groq.com/openai/v1', defaultModel: 'llama-3.3-70b-versatile', noEmbeddings: true },
  // deepseek-chat and deepseek-reasoner ended on 2026-07-24. Source: https://api-docs.deepseek.com/quick_start/pricing
  { name: 'deepseek', title: 'DeepSeek', envVar: 'DEEPSEEK_API_KEY', baseUrl: 'https://api.deepseek.com/v1', defaultModel: 'deepseek-v4-flash', replay: 'reasoning_content', thinking: switched('deepseek-v4', 'deepseek-flash', 'deepseek-pro'), noEmbeddings: true },
  { name: 'openrouter', title: 'OpenRouter', envVar: 'OPENROUTER_API_KEY', baseUrl: 'https://openrouter.ai/api/v1', defaultModel: 'openrouter/auto', headers: { 'x-title': 'svc' }, replay: 'reasoning_details', thinking: { on: { reasoning: { enabled: true } }, off: { reasoning: { enabled: false } } }, embedding: { ...small, model: 'openai/text-embedding-3-small' } },
  { name: 'mistral', title: 'Mistral', envVar: 'MISTRAL_API_KEY', baseUrl: 'https://api.mistral.ai/v1', defaultModel: 'mistral-small-latest', noStreamOptions: true, shortCallIds: true, embedding: { model: 'mistral-embed', texts: 64, chars: 48_000 } },
  { name: 'together', title: 'Together AI', envVar: 'TOGETHER_API_KEY', baseUrl: 'https://api.together.xyz/v1', defaultModel: 'meta-llama/Llama-3.3-70B-Instruct-Turbo' },
  { name: 'fireworks', title: 'Fireworks AI', envVar: 'FIREWORKS_API_KEY', baseUrl: 'https://api.fireworks.ai/inference/v1', defaultModel: 'accounts/fireworks/models/gpt-oss-120b', embedding: { model: 'nomic-ai/nomic-embed-text-v1.5', texts: 64, chars: 200_000 } },
  { name: 'perplexity', title: 'Perplexity', envVar: 'PERPLEXITY_API_KEY', baseUrl: 'https://api.perplexity.ai', defaultModel: 'sonar', noStreamOptions: true, noModels: true, noTools: true, noEmbeddings: true },
  { name: 'cerebras', title: 'Cerebras', envVar: 'CEREBRAS_API_KEY', baseUrl: 'https://api.cerebras.ai/v1', defaultModel: 'gpt-oss-120b', noEmbeddings: true },
  { name: 'sambanova', title: 'SambaNova', envVar: 'SAMBANOVA_API_KEY', baseUrl: 'https://api.sambanova.ai/v1', defaultModel: 'Meta-Llama-3.3-70B-Instruct' },
  { name: 'huggingface', title: 'Hugging Face', envVar: 'HF_API_KEY', otherEnvVars: ['HF_TOKEN'], baseUrl: 'https://router.huggingface.co/v1', defaultModel: 'meta-llama/Llama-3.3-70B-Instruct', noEmbeddings: true },
  { name: 'xai', title: 'xAI', envVar: 'XAI_API_KEY', baseUrl: 'https://api.x.ai/v1', defaultModel: 'grok-4', noEmbeddings: true },
  { name: 'moonshot', title: 'Moonshot AI', envVar: 'MOONSHOT_API_KEY', baseUrl: 'https://api.moonshot.ai/v1', defaultModel: 'kimi-k2.6', replay: 'reasoning_content', thinking: switched('kimi-k2.5', 'kimi-k2.6', 'kimi-k2.7', 'kimi-k3'), noEmbeddings: true },
  { name: 'qwen', title: 'Qwen', envVar: 'DASHSCOPE_API_KEY', baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1', defaultModel: 'qwen-plus', thinking: { models: ['qwen-', 'qwen3'], on: { enable_thinking: true }, off: { enable_thinking: false } }, embedding: { model: 'text-embedding-v4', texts: 10, chars: 80_000 } },
  { name: 'minimax', title: 'MiniMax', envVar: 'MINIMAX_API_KEY', baseUrl: 'https://api.minimax.io/v1', defaultModel: 'MiniMax-M2', noModels: true, noEmbeddings: true },
  { name: 'zhipu', title: 'Zhipu AI', envVar: 'ZHIPU_API_KEY', baseUrl: 'https://open.bigmodel.cn/api/paas/v4', defaultModel: 'glm-4.6', noModels: true, replay: 'reasoning_content', thinking: switched('glm-4.5', 'glm-4.6', 'glm-4.7', 'glm-5', 'GLM-'), embedding: { model: 'embedding-3', texts: 64, chars: 150_000 } },
  { name: 'zai', title: 'Z.ai', envVar: 'ZAI_API_KEY', baseUrl: 'https://api.z.ai/api/paas/v4', defaultModel: 'glm-4.6', noModels: true, replay: 'reasoning_content', thinking: switched('glm-4.5', 'glm-4.6', 'glm-4.7', 'glm-5', 'GLM-'), noEmbeddings: true },
  { name: 'qianfan', title: 'Baidu Qianfan', envVar: 'QIANFAN_API_KEY', baseUrl: 'https://qianfan.baidubce.com/v2', defaultModel: 'ernie-4.5-turbo-128k', embedding: { model: 'embedding-v1', texts: 16, chars: 16_000 } },
  { name: 'volcengine', title: 'Volcengine Ark', envVar: 'VOLCENGINE_API_KEY', otherEnvVars: ['ARK_API_KEY'], baseUrl: 'https://ark.cn-beijing.volces.com/api/v3', defaultModel: 'doubao-seed-1-6-250615', noModels: true, thinking: switched('doubao-seed'), embedding: { model: 'doubao-embedding-text-240515', texts: 64, chars: 150_000 } },
  { name: 'nvidia-nim', title: 'NVIDIA NIM', envVar: 'NVIDIA_API_KEY', baseUrl: 'https://integrate.api.nvidia.com/v1', defaultModel: 'meta/llama-3.3-70b-instruct' },
  { name: 'novita', title: 'Novita AI', envVar: 'NOVITA_API_KEY', baseUrl: 'https://api.novita.ai/v3/openai', defaultModel: 'meta-llama/llama-3.3-70b-instruct' },
  { name: 'deepinfra', title: 'DeepInfra', envVar: 'DEEPINFRA_API_KEY', baseUrl: 'https://api.deepinfra.com/v1/openai', defaultModel: 'zai-org/GLM-4.5', embedding: { model: 'BAAI/bge-m3', texts: 64, chars: 200_000 } },
  { name: 'ai21', title: 'AI21 Labs', envVar: 'AI21_API_KEY', baseUrl: 'https://api.ai21.com/studio/v1', defaultModel: 'jamba-large', noStreamOptions: true, noModels: true, noEmbeddings: true },
  { name: 'requesty', title: 'Requesty', envVar: 'REQUESTY_API_KEY', baseUrl: 'https://router.requesty.ai/v1', defaultModel: 'openai/gpt-5-mini', embedding: { ...small, model: 'openai/text-embedding-3-small' } },
  { name: 'chutes', title: 'Chutes', envVar: 'CHUTES_API_KEY', baseUrl: 'https://llm.chutes.ai/v1', defaultModel: 'openai/gpt-oss-120b', noEmbeddings: true },
  { name: 'venice', title: 'Venice', envVar: 'VENICE_API_KEY', baseUrl: 'https://api.venice.ai/api/v1', defaultModel: 'llama-3.3-70b', embedding: { model: 'text-embedding-bge-m3', texts: 64, chars: 200_000 } },
  { name: 'vercel', title: 'Vercel AI Gateway', envVar: 'AI_GATEWAY_API_KEY', baseUrl: 'https://ai-gateway.vercel.sh/v1', defaultModel: 'openai/gpt-5-mini', embedding: { ...small, model: 'openai/text-embedding-3-small' } },
  { name: 'baseten', title: 'Baseten', envVar: 'BASETEN_API_KEY', baseUrl: 'https://inference.baseten.co/v1', defaultModel: 'openai/gpt-oss-120b', noEmbeddings: true },
  { name: 'upstage', title: 'Upstage', envVar: 'UPSTAGE_API_KEY', baseUrl: 'https://api.upstage.ai/v1', defaultModel: 'solar-pro2' },
  { name: 'modelscope', title: 'ModelScope', envVar: 'MODELSCOPE_API_KEY', baseUrl: 'https://api-inference.modelscope.cn/v1', defaultModel: 'Qwen/Qwen3-30B-A3B-Instruct-2507', noEmbeddings: true },
  { name: 'github-models', title: 'GitHub Models', envVar: 'GITHUB_TOKEN', sharedKey: true, baseUrl: 'https://models.github.ai/inference', defaultModel: 'openai/gpt-4.1-mini', noModels: true, noEmbeddings: true },
  { name: 'llama', title: 'Llama API', envVar: 'LLAMA_API_KEY', baseUrl: 'https://api.llama.com/compat/v1', defaultModel: 'llama-3.3-70b-instruct', noEmbeddings: true },
  { name: 'morph', title: 'Morph', envVar: 'MORPH_API_KEY', baseUrl: 'https://api.morphllm.com/v1', defaultModel: 'auto', noEmbeddings: true },
  { name: 'inception', title: 'Inception', envVar: 'INCEPTION_API_KEY', baseUrl: 'https://api.inceptionlabs.ai/v1', defaultModel: 'mercury', noEmbeddings: true },
  { name: 'ollama', title: 'Ollama', baseUrl: 'http://127.0.0.1:11434/v1', defaultModel: 'llama3.2', embedding: { model: 'nomic-embed-text', texts: 64, chars: 200_000 } },
  { name: 'vllm', title: 'vLLM', baseUrl: 'http://127.0.0.1:8000/v1', defaultModel: 'default' },
  { name: 'lmstudio', title: 'LM Studio', baseUrl: 'http://127.0.0.1:1234/v1', defaultModel: 'default', embedding: { model: 'text-embedding-nomic-embed-text-v1.5', texts: 64, chars: 200_000 } },
  { name: 'lemonade', title: 'Lemonade', baseUrl: 'http://127.0.0.1:8000/api/v1', defaultModel: 'default' },
  { name: 'openai-compatible', title: 'Any OpenAI-compatible service', defaultModel: 'default' },
]
