import { settingFromText } from '../config/broker-configs.ts';
import { type Settings, withDefaults } from '../config/settings.ts';
import { type TopicSettings, topicSettings } from '../config/topic-settings.ts';
import type { Replica } from '../replica/replica.ts';
import { EntryType } from '../state/entry-types.ts';
import type { Topic } from '../state/topics.ts';

/**
 * The configurations in force on this node: what was set for the node, over what was set for all
 * nodes, over what was given at the start. What is derived from them is kept until any of them
 * changes.
 */
export class EffectiveConfigs {
  readonly #atStart: Settings;
  readonly #replica: Replica;
  readonly #nodeId: string;
  #settings: Settings;
  #topicSettings = new WeakMap<Topic, TopicSettings>();

  constructor(atStart: Settings, replica: Replica) {
    this.#atStart = atStart;
    this.#replica = replica;
    this.#nodeId = String(atStart['node.id']);
    this.#settings = this.#withOverrides();
    replica.listen({
      onApplied: (entry) => {
        if (entry.type === EntryType.configsSet) this.#renew();
      },
      onGroupApplied: () => undefined,
      onPlansDropped: () => undefined,
    });
  }

  get settings(): Settings {
    return this.#settings;
  }

  topicSettings(topic: Topic): TopicSettings {
    const known = this.#topicSettings.get(topic);
    if (known !== undefined) return known;
    const made = topicSettings(topic.configs, this.#settings);
    this.#topicSettings.set(topic, made);
    return made;
  }

  #renew(): void {
    this.#settings = this.#withOverrides();
    this.#topicSettings = new WeakMap();
  }

  #withOverrides(): Settings {
    const { brokerConfigs, nodeConfigs } = this.#replica.state;
    const texts = [...brokerConfigs, ...(nodeConfigs.get(this.#nodeId) ?? [])];
    const overrides = texts.map(([name, text]) => [name, settingFromText(name, text)]);
    return withDefaults({ ...this.#atStart, ...Object.fromEntries(overrides) });
  }
}
