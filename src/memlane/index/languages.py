"""The English for what developers ask in other languages: most memories of code are in English, some questions are not.

    english("Warum schlägt der Test fehl?")   ->   ["why", "fail", "test"]

A small dictionary, by hand, of the words that such questions are made of. A word matches what begins with an entry, so
that endings need not be listed; scripts without spaces match anywhere. No entry is an English word. One line for each
idea: English, then German, French, Spanish, Russian, Chinese and Japanese in any order.
"""

from __future__ import annotations

from functools import cache

from memlane.core.patterns import lazily
from memlane.index.encoders import vocabulary
from memlane.index.words import fold

LONGEST_ENDING = 5  # letters of a word beyond an entry
_SHORT = 4  # letters: a shorter entry is a whole word
_WORD = lazily(r"[^\W\d_]+")
_UNSPACED = lazily("[\u3040-\u30ff\u3400-\u9fff]+")
_IDEAS = """
add: hinzufüg ergänz ajouter añadi agreg добав 添加 增加 追加
address: adresse dirección adres адрес 地址 アドレス
all whole: ganze tous toute todos toda все весь всего 所有 全部 整个 すべて 全て 全体
allowed may: darf dürfen erlaubt autorisé puedo можно разреш 可以 允许 してもいい 許可
always: immer toujours siempre всегда 总是 一直 常に いつも
answer: antwort réponse réponds respuesta ответ 回答 答え
automatically: automatisch automatiquement автоматич 自动 自動
backup: sicherung sauvegarde respald seguridad резервн бэкап 备份 バックアップ
before: bevor vorher antes перед раньше 之前 以前 前に
branch: zweig branche ветк ветв 分支 ブランチ
build compile: kompilier recompil compilar сборк собра компил 编译 构建 ビルド コンパイル
certificate: zertifikat certificat certificado сертификат 证书 証明書
change: änder geändert cambi измен поменя 修改 更改 改变 変更
check: prüf überprüf vérifi comprob verific провер 检查 确认 確認 チェック
code: quelltext código код кода 代码 コード
command: befehl commande comando команд 命令 コマンド
commit: committen commiter коммит 提交 コミット
configuration settings: einstell konfigur réglage paramètre ajuste configura настро конфиг 配置 设置 設定
connection: verbind connexion conexión соедин подключ 连接 接続
copy: kopier copie copia копи 复制 拷贝 コピー
create: erstell anlegen créer crear создать создан 创建 新建 作成
database: datenbank données datos базы база 数据库 データベース
deadline: frist fristen échéance délai plazo срок 截止 期限 締め切り
delete remove: lösch entfern supprim effac borra elimin удал стер 删除 移除 削除
dependency: abhängig dépendance dependencia зависимост 依赖 依存
deploy release: ausliefer veröffentlich desplieg despleg развер релиз выпус 部署 发布 デプロイ リリース
device: gerät appareil dispositivo устройств 设备 デバイス 機器
directory folder: ordner verzeichnis dossier carpeta directorio папк каталог 目录 文件夹 フォルダ ディレクトリ
disk: festplatte disque диск 磁盘 硬盘 ディスク
documentation docs: dokumentation documentación документац 文档 文件说明 ドキュメント 文書
download: herunterlad télécharg descarg скача загруз 下载 ダウンロード
edit: bearbeit éditer editar редактир 编辑 編集
empty: leer leere vacío пуст 空的 空白 空の
error failure: fehler erreur ошибк сбой 错误 报错 エラー 失敗
every: jede jeder chaque кажд 每个 每次 毎
fail: fehlschl schlägt scheitert échoue провал пада 失败 失敗
fast: schnell rapide быстр 快速 速い
file: datei dateien fichier archivo файл 文件 ファイル
fix: beheb reparier corrig réparer arregl исправ почин 修复 修正 直す
format formatter: formatier formater formatear формат 格式化 フォーマット 整形
hang freeze stuck: hängt hängen bloque fige cuelga congel завис вис 卡住 挂起 固まる 止まる
image picture: bild bilder imagen картинк изображ образ 图片 图像 镜像 画像
install: installier instala установ 安装 インストール
key: schlüssel clé clave ключ 密钥 键 鍵 キー
language: sprache langue lengua язык 语言 言語
library: bibliothek bibliothèque biblioteca библиотек 库 ライブラリ
line: zeile ligne línea строк 行数 一行 行目
log: protokoll registro лог журнал 日志 ログ
long take seconds: dauert dauer durée longtemps tarda demora долго 很久 长时间 時間がかかる
merge: zusammenführ fusionn fusiona слия слить 合并 マージ
message: nachricht mensaje сообщен 消息 信息 メッセージ
month: monat mois meses месяц 月份 か月
name: namen nom noms nombre имя имен название 名称 名字 名前
network: netzwerk réseau сеть сетев 网络 ネットワーク
never not: niemals nicht jamais nunca нельзя никогда 不要 不能 从不 禁止 しない 決して
new: neuen новый новая новые 新的 新しい
node: knoten nœud nodo узел узл 节点 ノード
open: öffne öffnen ouvrir abrir откры 打开 開く
operating system os: betriebssystem operativo операционн 操作系统 オペレーティングシステム
order sequence: reihenfolge ordre orden порядок 顺序 順序 順番
package: paket paquet paquete пакет 软件包 包 パッケージ
page: seite seiten página страниц 页面 ページ
password: passwort kennwort contraseña парол 密码 パスワード
permission rights: berechtig rechte droits прав 权限 権限
project: projekt projet proyecto проект 项目 プロジェクト
question: frage fragen pregunta вопрос 问题 質問
read: lesen lire leer чита 读取 阅读 読む 読み
remind reminder: erinner rappel recorda напом 提醒 リマインド
repeat again: wiederhol nochmal повтор снова 重复 再次 再び もう一度
reset: zurücksetz réinitialis reinici сброс 重置 リセット
restart: redémarr перезапус 重启 再起動
restore: wiederherstell restaurer restaurar восстанов 恢复 復元
review: überprüfung relecture ревью 审查 评审 レビュー
rule convention: regel regeln règle regla правил 规则 规定 ルール 規則
run start launch: starten gestartet ausführ lancer exécut ejecut lanza запуст запуск выполн 运行 启动 执行 実行 起動
save store: speicher enregistr guarda сохран 保存
schedule: zeitplan planifi horario расписан 计划 定时 スケジュール
script: skript сценарий скрипт 脚本 スクリプト
search find: suche suchen finde cherch trouver busca encontra иска най поиск 搜索 查找 検索 探す
secret: geheim секрет тайн 机密 秘密
send: senden envoyer envia отправ 发送 送信
server: serveur servidor сервер 服务器 サーバー
slow: langsam медлен 慢 遅い
stop: anhalten arrêt détener останов 停止 止める
storage: speicherplatz stockage almacen хранилищ 存储 ストレージ
style: estilo стиль 风格 スタイル
table: tabelle tabla таблиц 表格 テーブル
task: aufgabe tâche tarea задач 任务 タスク
test: testen essai prueba тест 测试 テスト
time timeout: zeit tiempo врем 时间 時間
token: jeton токен 令牌 トークン
translate translated: übersetz traduct traduit traduc перевод переве 翻译 翻訳
update refresh upgrade: aktualisier actualiz обнов 更新 升级 アップデート
use: benutz verwend nutz utilis usar utiliza использ применя 使用 用什么 使う 使い
user: benutzer nutzer utilisateur usuario пользоват 用户 ユーザー
value: wert werte valeur значен 值 値
version: верси 版本 バージョン
wait: warten attendre espera жда ожида 等待 待つ
write: schreib écri escrib пис запис 写入 写 書く 書き
japanese ja: japanisch japonais japonés японск 日语 日文 日本語
chinese zh: chinesisch chinois китайск 中文 汉语 中国語
german de: deutsch allemand alemán немецк 德语 ドイツ語
korean ko: koreanisch coréen coreano корейск 韩语 韓国語
hundred: hundert centaines cientos сотни 几百 数百
directly: direkt directement directamente напрям 直接
"""


@cache
def entries() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in filter(None, _IDEAS.splitlines()):
        words, _, others = line.partition(":")
        for other in map(fold, others.split()):
            found[other] = (*found.get(other, ()), *words.split())
    return found


def english(text: str) -> list[str]:
    """The English words for those of a text that the dictionary has, in order, once each."""
    found: dict[str, None] = {}
    folded = fold(text)
    for word in _WORD.findall(folded):
        if word in vocabulary():
            continue
        known = entries()  # most questions are in English and need none
        for size in range(len(word), max(1, len(word) - LONGEST_ENDING - 1), -1):
            entry = word[:size]
            if entry in known and (size >= _SHORT or size == len(word)):
                found |= dict.fromkeys(known[entry])
                break
    if not text.isascii():
        for run in _UNSPACED.findall(folded):
            for entry, words in entries().items():
                if not entry.isascii() and entry in run:
                    found |= dict.fromkeys(words)
    return list(found)
